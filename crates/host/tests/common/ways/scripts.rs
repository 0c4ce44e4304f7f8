//! Python snippets for ways to use a device, and the command that starts a container. The ways are in `ways`.

/// Prelude of every script: helpers, and `wait`, which reports that the script holds the device.
pub const PRELUDE: &str = r"
import ctypes, fcntl, mmap, os, socket, stat, struct, sys, threading
a = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
def made(result):
    if result < 0: raise OSError(ctypes.get_errno(), 'refused')
    return result
def node(path):
    os.mknod(path, stat.S_IFBLK | 0o600, os.stat(a[0]).st_rdev)
    return path
# Python's own maps keep a descriptor.
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
def mapped(f, protection):
    if libc.mmap(None, 4096, protection, mmap.MAP_SHARED, f, 0) == ctypes.c_void_p(-1).value: made(-1)
    os.close(f)
def wait():
    print('ready', flush=True)
    sys.stdin.read()
";

pub const CONTAINER: &[&str] = &["unshare", "-m", "-n", "-u", "-i", "-p", "--fork", "--kill-child"];

/// Registers the open file with an io_uring, then closes it.
pub const REGISTERED: &str = r"
f = os.open(a[0], os.O_RDONLY)
ring = made(libc.syscall(425, 4, (ctypes.c_char * 120)()))
made(libc.syscall(427, ring, 2, (ctypes.c_int * 1)(f), 1))
os.close(f)";
/// Maps the open file, then closes it.
pub const MAPPED: &str = "mapped(os.open(a[0], os.O_RDONLY), mmap.PROT_READ)";
pub const MAPPED_TO_WRITE: &str = "mapped(os.open(a[0], os.O_RDWR), mmap.PROT_READ | mmap.PROT_WRITE)";
/// Sends the open file through a socket, then closes it.
pub const SENT: &str = "f = os.open(a[0], os.O_RDONLY); s, r = socket.socketpair(); socket.send_fds(s, [b'x'], [f]); os.close(f)";
/// Takes an open file description lock (`F_OFD_SETLK`) on a hundred bytes, as QEMU does.
pub const LOCKED: &str =
    "f = os.open(a[0], os.O_RDWR); fcntl.fcntl(f, 37, struct.pack('hhqqi', fcntl.F_RDLCK, 0, 100, 100, 0))";
/// Mounts a FUSE filesystem without a server, with the same mount options as fusermount(1).
pub const SERVED: &str = r"
f = os.open('/dev/fuse', os.O_RDWR)
options = b'fd=%d,rootmode=40000,user_id=0,group_id=0' % f
made(libc.mount(b'x', a[0].encode(), b'fuse.x', 6, options))";
/// Writes an erofs with an empty directory to the device `a[0]`, and mounts its file at the folder `a[3]`. The file
/// is named by `a[2]` relative to the folder `a[1]`. mount(8) cannot be used, because it would make a loop device.
pub const EROFS: &str = r"
super = struct.pack('<IIIBBHQQIIII', 0xE0F5E1E2, 0, 0, 12, 0, 2, 2, 0, 0, 4096, 1, 0) + bytes(16) + b'x' * 4 + bytes(16)
b = bytearray(12288)
b[1024:1024 + len(super)] = super
b[4160:4192] = struct.pack('<HHHHIIIIHHI', 0, 0, 0o040755, 2, 27, 0, 2, 1, 0, 0, 0)
b[8192:8219] = struct.pack('<QHBB', 2, 24, 2, 0) + struct.pack('<QHBB', 2, 25, 2, 0) + b'...'
with open(a[0], 'r+b') as f:
    f.write(b); f.flush(); os.fsync(f)
os.chdir(a[1])
made(libc.mount(a[2].encode(), a[3].encode(), b'erofs', 1, None))";
