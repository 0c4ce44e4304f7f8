//! SQLite files in storage of the program ([`Files`]): an SQLite VFS, registered under a name.
//!
//! Only one connection at a time may open the files, because locks are always granted. There is no shared memory, so
//! a write-ahead log needs `PRAGMA locking_mode = EXCLUSIVE` first, and there are no temporary files, so `PRAGMA
//! temp_store = MEMORY` is needed. Source: SQLite's documentation of `sqlite3_vfs` and `sqlite3_io_methods`
//! (sqlite.org/c3ref), version 3.37 and later.

#![allow(unsafe_code)]

use rusqlite::ffi;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The start of 1970 in milliseconds of the Julian day.
const JULIAN_1970_MS: i64 = 210_866_760_000_000;

/// The maximum length of a file name in bytes.
const LONGEST_NAME: c_int = 256;

/// The sector size in bytes: SQLite assumes that a sector is written atomically, and pads journal headers to it.
const SECTOR: c_int = 4096;

/// The number of an open file.
pub type FileNumber = u32;

/// An error of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The device failed, or has no power.
    #[error("the device failed")]
    Device,
    /// The file does not exist.
    #[error("there is no such file")]
    Missing,
    /// The device is full.
    #[error("the device is full")]
    Full,
}

/// The operations of a filesystem that SQLite needs. Offsets and lengths are bytes.
pub trait Files: Send {
    /// Opens a file, and creates it if it does not exist and `create` is set.
    ///
    /// # Errors
    /// [`FileError::Missing`] if the file does not exist.
    fn open(&mut self, name: &str, create: bool) -> Result<FileNumber, FileError>;
    /// Closes a file.
    fn close(&mut self, file: FileNumber);
    /// Removes a file; with `sync`, durably.
    fn delete(&mut self, name: &str, sync: bool) -> Result<(), FileError>;
    /// Returns whether a file exists.
    fn exists(&mut self, name: &str) -> Result<bool, FileError>;
    /// Reads at `offset`. Returns the number of bytes before the end of the file.
    fn read(&mut self, file: FileNumber, offset: u64, into: &mut [u8]) -> Result<usize, FileError>;
    /// Writes at `offset`, and extends the file if necessary.
    fn write(&mut self, file: FileNumber, offset: u64, bytes: &[u8]) -> Result<(), FileError>;
    /// Sets the length of a file.
    fn truncate(&mut self, file: FileNumber, length: u64) -> Result<(), FileError>;
    /// Makes a file durable (`fsync`).
    fn sync(&mut self, file: FileNumber) -> Result<(), FileError>;
    /// The length of a file.
    fn size(&mut self, file: FileNumber) -> Result<u64, FileError>;
    /// Milliseconds since 1970, for `unixepoch()`.
    fn now_ms(&self) -> i64;
}

type Shared = Mutex<Option<Box<dyn Files>>>;

/// Files that are registered with SQLite as a VFS.
///
/// The VFS stays registered until the process ends, because a connection may still use it; it takes a few hundred
/// bytes. Dropping this value drops the files, after which all operations fail.
pub struct Registered {
    name: String,
    shared: &'static Shared,
}

impl Registered {
    /// Registers `files` under a unique name.
    ///
    /// # Errors
    /// SQLite's error text.
    pub fn new(files: Box<dyn Files>) -> Result<Registered, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("lowtide-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let c_name = CString::new(name.clone()).expect("it has no zero bytes");
        let shared: &'static Shared = Box::leak(Box::new(Mutex::new(Some(files))));
        let vfs = Box::leak(Box::new(ffi::sqlite3_vfs {
            iVersion: 2,
            szOsFile: size_of::<File>() as c_int,
            mxPathname: LONGEST_NAME,
            pNext: ptr::null_mut(),
            zName: c_name.into_raw(),
            pAppData: ptr::from_ref(shared).cast_mut().cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: Some(last_error),
            xCurrentTimeInt64: Some(current_time_ms),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        }));
        // SAFETY: the structure, its name and its data are never freed, and every function below fulfils its
        // contract.
        let code = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
        match code {
            ffi::SQLITE_OK => Ok(Registered { name, shared }),
            code => Err(ffi::code_to_str(code).to_owned()),
        }
    }

    /// The name of the VFS, for opening a connection.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// An open file. SQLite uses the first field only.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    shared: *const Shared,
    number: FileNumber,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Without shared memory and without memory maps.
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(grant),
    xUnlock: Some(grant),
    xCheckReservedLock: Some(not_reserved),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// Calls the files, or fails if they were dropped.
fn ask<T>(shared: &Shared, ask: impl FnOnce(&mut dyn Files) -> Result<T, FileError>) -> Result<T, FileError> {
    let mut files = shared.lock().unwrap_or_else(PoisonError::into_inner);
    files.as_mut().map_or(Err(FileError::Device), |files| ask(&mut **files))
}

/// Converts a result to an SQLite code; `device` is the code of a device error.
fn code(result: Result<(), FileError>, device: c_int) -> c_int {
    match result {
        Ok(()) => ffi::SQLITE_OK,
        Err(FileError::Device) => device,
        Err(FileError::Missing) => ffi::SQLITE_CANTOPEN,
        Err(FileError::Full) => ffi::SQLITE_FULL,
    }
}

/// The files of a VFS.
///
/// # Safety
/// `vfs` was made by [`Registered::new`].
unsafe fn shared_of<'a>(vfs: *mut ffi::sqlite3_vfs) -> &'a Shared {
    // SAFETY: `new` stored a reference that lives as long as the process.
    unsafe { &*(*vfs).pAppData.cast::<Shared>() }
}

/// The files of an open file, and its number.
///
/// # Safety
/// `file` was opened by [`open`].
unsafe fn of<'a>(file: *mut ffi::sqlite3_file) -> (&'a Shared, FileNumber) {
    // SAFETY: `open` initialised it as a `File`, whose files live as long as the process.
    unsafe {
        let file = file.cast::<File>();
        (&*(*file).shared, (*file).number)
    }
}

/// A name from SQLite; `None` if it is null or not UTF-8.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn text<'a>(name: *const c_char) -> Option<&'a str> {
    // SAFETY: as the caller promises.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().ok()).flatten()
}

// SAFETY of all functions below: SQLite passes a VFS that `new` registered or a file that `open` opened, C strings as
// names, buffers of the stated length, and valid output pointers.

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: see above. SQLite also reads the methods if opening fails; they are null then.
    unsafe {
        (*file).pMethods = ptr::null();
        let shared = shared_of(vfs);
        let Some(name) = text(name) else { return ffi::SQLITE_CANTOPEN };
        match ask(shared, |files| files.open(name, flags & ffi::SQLITE_OPEN_CREATE != 0)) {
            Ok(number) => {
                ptr::write(
                    file.cast(),
                    File { base: ffi::sqlite3_file { pMethods: &METHODS }, shared, number },
                );
                if !out_flags.is_null() {
                    *out_flags = flags;
                }
                ffi::SQLITE_OK
            }
            Err(error) => code(Err(error), ffi::SQLITE_IOERR),
        }
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: see above.
    let (shared, number) = unsafe { of(file) };
    let closed = ask(shared, |files| {
        files.close(number);
        Ok(())
    });
    code(closed, ffi::SQLITE_IOERR_CLOSE)
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    into: *mut c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: see above.
    let ((shared, number), into) = unsafe {
        // Bytes past the end of the file read as zeroes, and a slice must be initialised.
        ptr::write_bytes(into.cast::<u8>(), 0, length as usize);
        (of(file), std::slice::from_raw_parts_mut(into.cast::<u8>(), length as usize))
    };
    match ask(shared, |files| files.read(number, offset as u64, into)) {
        Ok(there) if there < length as usize => ffi::SQLITE_IOERR_SHORT_READ,
        read => code(read.map(drop), ffi::SQLITE_IOERR_READ),
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: see above.
    let ((shared, number), bytes) =
        unsafe { (of(file), std::slice::from_raw_parts(from.cast::<u8>(), length as usize)) };
    code(ask(shared, |files| files.write(number, offset as u64, bytes)), ffi::SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: ffi::sqlite3_int64) -> c_int {
    // SAFETY: see above.
    let (shared, number) = unsafe { of(file) };
    code(ask(shared, |files| files.truncate(number, length as u64)), ffi::SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: see above.
    let (shared, number) = unsafe { of(file) };
    code(ask(shared, |files| files.sync(number)), ffi::SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: see above.
    let (shared, number) = unsafe { of(file) };
    let found = ask(shared, |files| files.size(number));
    if let Ok(found) = found {
        // SAFETY: see above.
        unsafe { *size = found as ffi::sqlite3_int64 };
    }
    code(found.map(drop), ffi::SQLITE_IOERR_FSTAT)
}

unsafe extern "C" fn grant(_file: *mut ffi::sqlite3_file, _lock: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn not_reserved(_file: *mut ffi::sqlite3_file, held: *mut c_int) -> c_int {
    // SAFETY: see above.
    unsafe { *held = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(
    _file: *mut ffi::sqlite3_file,
    _what: c_int,
    _argument: *mut c_void,
) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    SECTOR
}

unsafe extern "C" fn characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    // As for files of Linux, a write does not damage adjacent bytes.
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: see above.
    let (shared, name) = unsafe { (shared_of(vfs), text(name)) };
    let Some(name) = name else { return ffi::SQLITE_IOERR_DELETE };
    match ask(shared, |files| files.delete(name, sync != 0)) {
        Err(FileError::Missing) => ffi::SQLITE_IOERR_DELETE_NOENT,
        deleted => code(deleted, ffi::SQLITE_IOERR_DELETE),
    }
}

unsafe extern "C" fn access(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    _how: c_int,
    there: *mut c_int,
) -> c_int {
    // SAFETY: see above.
    let (shared, name) = unsafe { (shared_of(vfs), text(name)) };
    let found = name.map_or(Ok(false), |name| ask(shared, |files| files.exists(name)));
    // SAFETY: see above.
    unsafe { *there = c_int::from(found == Ok(true)) };
    code(found.map(drop), ffi::SQLITE_IOERR_ACCESS)
}

unsafe extern "C" fn full_pathname(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: see above. The copy includes the terminating zero and fits.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if bytes.len() > room as usize {
            return ffi::SQLITE_CANTOPEN;
        }
        ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len());
    }
    ffi::SQLITE_OK
}

/// Never called: SQLite takes randomness from its default VFS.
unsafe extern "C" fn randomness(_vfs: *mut ffi::sqlite3_vfs, length: c_int, out: *mut c_char) -> c_int {
    // SAFETY: see above.
    unsafe { ptr::write_bytes(out, 0, length as usize) };
    length
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    microseconds
}

unsafe extern "C" fn current_time_ms(vfs: *mut ffi::sqlite3_vfs, now: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: see above.
    let shared = unsafe { shared_of(vfs) };
    let found = ask(shared, |files| Ok(files.now_ms()));
    // SAFETY: see above.
    unsafe { *now = JULIAN_1970_MS + found.unwrap_or(0) };
    code(found.map(drop), ffi::SQLITE_ERROR)
}

unsafe extern "C" fn current_time(vfs: *mut ffi::sqlite3_vfs, now: *mut f64) -> c_int {
    let mut ms = 0;
    // SAFETY: see above.
    unsafe {
        let code = current_time_ms(vfs, &raw mut ms);
        *now = ms as f64 / 86_400_000.0;
        code
    }
}

unsafe extern "C" fn last_error(_vfs: *mut ffi::sqlite3_vfs, _room: c_int, _out: *mut c_char) -> c_int {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::{Connection, OpenFlags};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    #[derive(Default)]
    struct Plain {
        names: BTreeMap<String, usize>,
        files: Vec<Vec<u8>>,
    }

    /// Files that several registrations share, as after a restart, and the number of syncs.
    #[derive(Clone, Default)]
    struct SharedFiles(Arc<Mutex<Plain>>, Arc<AtomicU32>);

    impl Files for SharedFiles {
        fn open(&mut self, name: &str, create: bool) -> Result<FileNumber, FileError> {
            let mut plain = self.0.lock().expect("no panic");
            if let Some(number) = plain.names.get(name) {
                return Ok(*number as FileNumber);
            }
            if !create {
                return Err(FileError::Missing);
            }
            let number = plain.files.len();
            plain.files.push(Vec::new());
            plain.names.insert(name.to_owned(), number);
            Ok(number as FileNumber)
        }
        fn close(&mut self, _: FileNumber) {}
        fn delete(&mut self, name: &str, _: bool) -> Result<(), FileError> {
            let gone = self.0.lock().expect("no panic").names.remove(name);
            gone.map(drop).ok_or(FileError::Missing)
        }
        fn exists(&mut self, name: &str) -> Result<bool, FileError> {
            Ok(self.0.lock().expect("no panic").names.contains_key(name))
        }
        fn read(&mut self, file: FileNumber, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
            let plain = self.0.lock().expect("no panic");
            let from = plain.files[file as usize].get(offset as usize..).unwrap_or_default();
            let there = from.len().min(into.len());
            into[..there].copy_from_slice(&from[..there]);
            Ok(there)
        }
        fn write(&mut self, file: FileNumber, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
            let mut plain = self.0.lock().expect("no panic");
            let (file, end) = (&mut plain.files[file as usize], offset as usize + bytes.len());
            let longer = file.len().max(end);
            file.resize(longer, 0);
            file[offset as usize..end].copy_from_slice(bytes);
            Ok(())
        }
        fn truncate(&mut self, file: FileNumber, length: u64) -> Result<(), FileError> {
            self.0.lock().expect("no panic").files[file as usize].truncate(length as usize);
            Ok(())
        }
        fn sync(&mut self, _: FileNumber) -> Result<(), FileError> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        fn size(&mut self, file: FileNumber) -> Result<u64, FileError> {
            Ok(self.0.lock().expect("no panic").files[file as usize].len() as u64)
        }
        fn now_ms(&self) -> i64 {
            86_400_000
        }
    }

    fn connect(vfs: &Registered) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = Connection::open_with_flags_and_vfs("plain.db", flags, vfs.name())?;
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY")?;
        Ok(connection)
    }

    #[test]
    fn a_database_survives_a_restart_with_both_journals() {
        for journal in ["DELETE", "WAL"] {
            let files = SharedFiles::default();
            let vfs = Registered::new(Box::new(files.clone())).expect("registers");
            let connection = connect(&vfs).expect("opens");
            connection.pragma_update(None, "journal_mode", journal).expect("takes it");
            connection.execute_batch("CREATE TABLE t (n INTEGER); BEGIN").expect("made");
            for n in 0..1_000 {
                connection.execute("INSERT INTO t VALUES (?)", [n]).expect("inserted");
            }
            connection.execute_batch("COMMIT").expect("committed");
            let day: i64 = connection.query_row("SELECT unixepoch()", [], |row| row.get(0)).expect("a time");
            assert_eq!(day, 86_400, "{journal}: the time is that of the files");
            // The files outlive the connection.
            drop((connection, vfs));
            let vfs = Registered::new(Box::new(files.clone())).expect("registers again");
            let connection = connect(&vfs).expect("opens again");
            let sum: i64 = connection.query_row("SELECT sum(n) FROM t", [], |row| row.get(0)).expect("a sum");
            assert_eq!(sum, 499_500, "{journal}");
            assert!(files.1.load(Ordering::Relaxed) >= 2, "{journal}: synced");
        }
    }

    #[test]
    fn connections_fail_after_the_files_are_dropped() {
        let vfs = Registered::new(Box::new(SharedFiles::default())).expect("registers");
        let connection = connect(&vfs).expect("opens");
        connection.execute_batch("CREATE TABLE t (n INTEGER)").expect("made");
        let name = vfs.name().to_owned();
        drop(vfs);
        connection.execute_batch("INSERT INTO t VALUES (1)").expect_err("there are no files");
        drop(connection);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let again = Connection::open_with_flags_and_vfs("plain.db", flags, name.as_str());
        assert!(again.is_err() || again.is_ok_and(|it| it.execute_batch("CREATE TABLE t (n)").is_err()));
    }
}
