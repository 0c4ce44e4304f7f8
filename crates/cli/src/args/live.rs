//! Arguments of `lowtide drive serve`, `stat`, and the orders to a live drive.

use super::{PlainFormat, factor, scale, share, size};
use clap::{Args, Subcommand, ValueEnum};
use lowtide_core::{Bytes, Nanos, Seed};
use lowtide_device::fault::{EndOfLife, Errors};
use lowtide_device::power::CacheKind;
use lowtide_host::HostError;
use lowtide_host::http::Hosts;
use lowtide_host::http::head::Host;
use lowtide_host::live::Buffers;
use lowtide_live::{Offer, Pace};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Without --unix, --tcp, --stdio or systemd sockets, the server listens at 127.0.0.1:10809.\n\
    `lowtide drive stat SOCKET`, `powercut`, `pause`, `fail` and others accept the path of --unix or \
    --control."
)]
pub struct ServeArguments {
    /// Simulated devices: names (see `lowtide devices`) or paths of files; NAME=DEVICE names the export. The first
    /// device is the default export
    #[arg(required = true, value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Listen at a unix socket
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// Listen at a TCP port; 0 takes any free port
    #[arg(long, value_name = "HOST:PORT")]
    pub tcp: Option<String>,
    /// Serve one client at stdin and stdout
    #[arg(short = 's', long, conflicts_with_all = ["unix", "tcp"])]
    pub stdio: bool,
    /// Where to store the data: `memory`, a sparse file (created if missing), or a folder for a temporary file; with
    /// several drives, NAME=FILE
    #[arg(long, default_value = "memory", value_name = "FILE")]
    pub data: Vec<String>,
    /// Keep the drive's map, wear and history in a file; with several drives, NAME=FILE
    #[arg(long, value_name = "FILE")]
    pub state: Vec<String>,
    #[command(flatten)]
    pub drive: DriveArguments,
    /// Serve read-only
    #[arg(long)]
    pub read_only: bool,
    /// Control socket for the other verbs of `lowtide drive` [default: the path of --unix plus `.control`]
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Serve counters for Prometheus at http://ADDRESS/metrics; a port alone means 127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = super::address)]
    pub metrics: Option<SocketAddr>,
    /// With --metrics: also answer requests for this host name or address, in addition to localhost and the machine's
    /// own
    #[arg(long, value_name = "HOST", requires = "metrics", value_parser = Hosts::parse)]
    pub accept_host: Vec<Host>,
    /// Record every request into a new file from the start; see `lowtide drive record`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// TLS for clients
    #[arg(long, default_value = "off", requires_ifs = [("on", "certificates"), ("require", "certificates")])]
    pub tls: TlsUse,
    /// A folder with server-cert.pem and server-key.pem and, to verify clients, ca-cert.pem
    #[arg(long = "tls-certificates", value_name = "DIR", id = "certificates")]
    pub certificates: Option<PathBuf>,
    /// Accept only clients with a certificate signed by ca-cert.pem
    #[arg(long, requires = "certificates")]
    pub tls_verify_peer: bool,
    #[command(flatten)]
    pub clients: ClientsArguments,
}

/// Limits of the clients of a server.
#[derive(Debug, Args)]
pub struct ClientsArguments {
    /// Maximum number of concurrent clients that have chosen an export
    #[arg(long, default_value_t = 128, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_clients: u16,
    /// Memory for the requests and replies of all clients: at least 64MiB, and at least 512KiB per client
    /// [default: 256MiB or 1MiB per client, whichever is more]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub buffers: Option<Bytes>,
}

impl ClientsArguments {
    /// Memory for the clients' requests and replies.
    ///
    /// # Errors
    /// If it is too little for the number of clients.
    pub fn buffers(&self) -> Result<Buffers, HostError> {
        Buffers::new(self.buffers, self.max_clients)
    }
}

/// Properties of a live drive.
#[derive(Debug, Args)]
pub struct DriveArguments {
    /// Complete each request at the time that the model gives (the default)
    #[arg(long, conflicts_with = "no_delay")]
    pub real_time: bool,
    /// Complete each request at once; the model runs in virtual time
    #[arg(long)]
    pub no_delay: bool,
    /// Run with real-time priority (SCHED_FIFO), ahead of ordinary programs
    #[arg(long)]
    pub rt: bool,
    /// Replace the device's write cache
    #[arg(long, value_name = "protected|volatile|lying")]
    pub cache: Option<CacheKind>,
    /// Leave a share of the capacity unused
    #[arg(long, default_value = "0", value_parser = share, value_name = "SHARE")]
    pub reserve: f64,
    /// Scale the drive down, such as 1/16
    #[arg(long, default_value = "1", value_parser = scale)]
    pub scale: u64,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl DriveArguments {
    /// The `number`-th drive of a server.
    pub fn offer(&self, name: Option<String>, device: &str, number: u64) -> Offer {
        Offer {
            name,
            reserve: self.reserve,
            scale: self.scale,
            cache: self.cache,
            seed: Seed::new(self.seed).part("drive", number),
            ..Offer::of(device)
        }
    }

    /// The pace of the drive. `transport_ns` measures the time of a request outside the model, in nanoseconds; it is
    /// called only in real time.
    ///
    /// # Errors
    /// The error of `transport_ns`.
    pub fn pace<E>(&self, transport_ns: impl FnOnce() -> Result<u64, E>) -> Result<Pace, E> {
        if self.no_delay {
            return Ok(Pace::NoDelay);
        }
        Ok(Pace::RealTime { transport_ns: transport_ns()? })
    }
}

/// Whether clients use TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TlsUse {
    /// Clients cannot use TLS
    Off,
    /// Clients may use TLS
    On,
    /// Clients must use TLS
    Require,
}

/// A server, and optionally one of its drives.
#[derive(Debug, Args)]
pub struct ServerArguments {
    /// The server: its unix socket, its control socket, or the name of an attached drive
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,
    /// The drive, if the server has several [default: all drives]
    #[arg(long, value_name = "NAME")]
    pub drive: Option<String>,
}

#[derive(Debug, Args)]
pub struct StatArguments {
    #[command(flatten)]
    pub server: ServerArguments,
    /// Repeat at this interval until Ctrl-C
    #[arg(long, value_name = "TIME")]
    pub every: Option<Nanos>,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: PlainFormat,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Flushed data and writes with forced unit access survive. The server's seed decides whether \
    each other write in the drive's volatile cache is kept, dropped or torn. Connections end. Reattach an \
    attached drive with `lowtide drive attach --again NAME`."
)]
pub struct CutArguments {
    #[command(flatten)]
    pub server: ServerArguments,
    /// Atomic write size in bytes: 512 or 4096
    #[arg(long, default_value_t = 4096, value_name = "BYTES")]
    pub tear: u32,
    /// Leave the power off: every request fails until `lowtide drive power-on`
    #[arg(long)]
    pub stay_off: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("slowness").multiple(true))]
#[command(after_help = "Each call replaces all faults of the drive. A call without options removes them.")]
pub struct FailArguments {
    #[command(flatten)]
    pub server: ServerArguments,
    /// Fail reads of a range, or a share of them: `all`, `10GiB..11GiB`, `1%`, `0..1GiB@50%`
    #[arg(long, value_name = "RANGE[@SHARE]", value_parser = errors)]
    pub read_errors: Option<Errors>,
    /// Fail writes: RANGE[@SHARE] as for --read-errors
    #[arg(long, value_name = "RANGE[@SHARE]", value_parser = errors)]
    pub write_errors: Option<Errors>,
    /// Multiply the time of requests by this factor
    #[arg(long, value_parser = factor, value_name = "FACTOR", group = "slowness")]
    pub slow: Option<f64>,
    /// Delay requests by this time
    #[arg(long, value_name = "TIME", group = "slowness")]
    pub delay: Option<Nanos>,
    /// Slow down only this share of the requests
    #[arg(long, value_parser = share, value_name = "SHARE", requires = "slowness")]
    pub slow_share: Option<f64>,
    /// Stop slowing down requests after this time
    #[arg(long = "for", value_name = "TIME", requires = "slowness")]
    pub span: Option<Nanos>,
    /// Refuse writes: `now`, or after this mean number of erase cycles per block
    #[arg(long, value_name = "now|CYCLES", value_parser = end_of_life)]
    pub end_of_life: Option<EndOfLife>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The file is a trace: `lowtide run replay --set workload.trace=FILE --target device:NAME` \
    sends the same requests to any device, in virtual time."
)]
pub struct RecordArguments {
    #[command(subcommand)]
    pub verb: RecordVerb,
}

#[derive(Debug, Subcommand)]
pub enum RecordVerb {
    /// Record every request into a new file
    Start {
        #[command(flatten)]
        server: ServerArguments,
        /// The new file
        file: PathBuf,
    },
    /// End the recording
    Stop {
        #[command(flatten)]
        server: ServerArguments,
    },
}

/// Parses `now|CYCLES`.
fn end_of_life(text: &str) -> Result<EndOfLife, String> {
    if text == "now" {
        return Ok(EndOfLife::Now);
    }
    let cycles = text.parse().map_err(|_| "write `now` or a number of erase cycles".to_owned())?;
    Ok(EndOfLife::Worn { cycles })
}

/// Parses `RANGE[@SHARE]`.
fn errors(text: &str) -> Result<Errors, String> {
    let wrong = || {
        "write `all`, a range such as `10GiB..11GiB`, a share such as `1%`, or both such as `0..1GiB@50%`"
            .to_owned()
    };
    let (range, part) = match text.split_once('@') {
        Some((range, part)) => (range, Some(part)),
        None if text.ends_with('%') => ("all", Some(text)),
        None => (text, None),
    };
    let mut errors = Errors::default();
    if let Some(part) = part {
        errors.share = share(part).map_err(|_| wrong())?;
    }
    if range != "all" {
        let (from, to) = range.split_once("..").ok_or_else(wrong)?;
        let size = |text: &str| text.parse::<Bytes>().map_err(|_| wrong());
        errors.from = if from.is_empty() { Bytes::ZERO } else { size(from)? };
        errors.to = if to.is_empty() { None } else { Some(size(to)?) };
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_shares_parse() {
        let whole = Errors::default();
        assert_eq!(errors("all"), Ok(whole));
        assert_eq!(errors("1%"), Ok(Errors { share: 0.01, ..whole }));
        let range = Errors { from: Bytes::gib(1), to: Some(Bytes::gib(2)), share: 0.5 };
        assert_eq!(errors("1GiB..2GiB@50%"), Ok(range));
        assert_eq!(errors("..2GiB"), Ok(Errors { to: Some(Bytes::gib(2)), ..whole }));
        for bad in ["", "1GiB", "x..y", "all@200%", "1GiB..2GiB@"] {
            assert!(errors(bad).is_err(), "{bad}");
        }
    }
}
