//! Processor, memory and I/O limits of the control group of this process (cgroup v2). In a container, these
//! limits are reported instead of the resources of the machine.
//!
//! Version 1 is not supported: current systems do not use it.

use std::fs;
use std::path::Path;

/// The mount point of the hierarchy.
const ROOT: &str = "/sys/fs/cgroup";

/// The tightest limits, by name. Resources without a limit are left out.
pub(crate) fn limits() -> Vec<(&'static str, String)> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim_start_matches('/');
    of(Path::new(ROOT), &Path::new(ROOT).join(own))
}

/// The limits of a group and of all groups above it, up to the root.
fn of(root: &Path, own: &Path) -> Vec<(&'static str, String)> {
    let groups: Vec<&Path> = own.ancestors().take_while(|path| path.starts_with(root)).collect();
    let lines = |name: &str| -> Vec<String> {
        let texts = groups.iter().filter_map(|group| fs::read_to_string(group.join(name)).ok());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let mut found = Vec::new();
    // `50000 100000`: quota and period in microseconds.
    let cpu = lines("cpu.max").iter().filter_map(|line| share(line)).min_by(f64::total_cmp);
    found.extend(cpu.map(|cores| ("cgroup-cpu", format!("{cores:.2} processors"))));
    let memory = lines("memory.max").iter().filter_map(|line| line.parse::<u64>().ok()).min();
    found.extend(memory.map(|bytes| ("cgroup-memory", format!("{} MiB", bytes >> 20))));
    // `8:0 rbps=max wbps=1048576 riops=max wiops=max`
    let io: Vec<String> = lines("io.max").into_iter().filter_map(|line| tight(&line)).collect();
    found.extend((!io.is_empty()).then(|| ("cgroup-io", io.join("; "))));
    found
}

fn share(line: &str) -> Option<f64> {
    let (quota, period) = line.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

/// The limits of a line that are not `max`.
fn tight(line: &str) -> Option<String> {
    let (device, limits) = line.split_once(' ')?;
    let limits: Vec<&str> = limits.split(' ').filter(|limit| !limit.ends_with("=max")).collect();
    (!limits.is_empty()).then(|| format!("{device} {}", limits.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_up_to_the_root_applies() {
        let directory = tempfile::tempdir().expect("a directory");
        let (root, own) = (directory.path(), directory.path().join("a/b"));
        fs::create_dir_all(&own).expect("made");
        let write = |path: &Path, name: &str, text: &str| fs::write(path.join(name), text).expect("written");
        write(&own, "cpu.max", "max 100000\n");
        write(&root.join("a"), "cpu.max", "150000 100000\n");
        write(&own, "memory.max", "1073741824\n");
        write(&root.join("a"), "memory.max", "max\n");
        write(&own, "io.max", "8:0 rbps=max wbps=1048576 riops=max wiops=max\n");
        assert_eq!(
            of(root, &own),
            [
                ("cgroup-cpu", "1.50 processors".to_owned()),
                ("cgroup-memory", "1024 MiB".to_owned()),
                ("cgroup-io", "8:0 wbps=1048576".to_owned())
            ]
        );
        assert_eq!(of(root, root), []);
    }
}
