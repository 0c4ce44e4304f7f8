//! [`Namespace`]: the mounts of each mount namespace that has a process.
//!
//! A filesystem may be mounted in a namespace that this process does not see: in a container, or in the namespace of
//! a service.
//!
//! # Not handled
//! Namespaces without a process. The kernel refuses to open a device exclusively that is mounted in one, but does not
//! report the mount point.

use super::process::{self, Process, Unseen};
use crate::mountinfo::{self, Mount};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A mount namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    /// A process and a thread in the namespace; `None` for the namespace of this process.
    thread: Option<(u32, u32)>,
    /// The mounts of the namespace, oldest first.
    pub mounts: Vec<Mount>,
}

impl Namespace {
    /// All mount namespaces.
    pub(super) fn all(processes: &[Process], unseen: &mut Unseen) -> Vec<Namespace> {
        let link = |folder: &str| std::fs::read_link(format!("{folder}/ns/mnt"));
        let mut seen = BTreeSet::from_iter(link("/proc/self").ok());
        let own = mountinfo::read("self").inspect_err(|error| unseen.text("/proc/self/mountinfo", error));
        let mut all = vec![Namespace { thread: None, mounts: own.unwrap_or_default() }];
        for process in processes {
            for &thread in &process.threads {
                let folder = process::folder(process.number, thread);
                let mounts = match link(&folder) {
                    Ok(namespace) => {
                        if !seen.insert(namespace) {
                            continue;
                        }
                        mountinfo::read(folder.trim_start_matches("/proc/"))
                    }
                    Err(error) => Err(error),
                };
                match mounts {
                    Ok(mounts) => all.push(Namespace { thread: Some((process.number, thread)), mounts }),
                    Err(error) => unseen.process(process, &error),
                }
            }
        }
        all
    }

    /// The mounts that this process sees.
    pub(super) fn own_mounts(namespaces: &[Namespace]) -> &[Mount] {
        namespaces.iter().find(|it| it.is_own()).map_or(&[], |it| &it.mounts)
    }

    /// The namespace for messages: ` in the mount namespace of sleep (process 12)`; empty for the namespace of this
    /// process.
    pub(super) fn suffix(&self) -> String {
        self.thread.map_or_else(String::new, |(process, _)| {
            format!(" in the mount namespace of {}", process::name(process))
        })
    }

    /// Returns whether it is the namespace of this process.
    pub(super) fn is_own(&self) -> bool {
        self.thread.is_none()
    }

    /// The path by which this process reaches a path of the namespace.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        let Some((process, thread)) = self.thread else { return path.to_owned() };
        let below = path.strip_prefix("/").unwrap_or(path);
        Path::new(&process::folder(process, thread)).join("root").join(below)
    }
}
