//! `lowtide drive serve`: simulated drives for NBD clients. `lowtide_host` has the protocol and the loop,
//! `lowtide_live` the drives.

use crate::args::{ServeArguments, TlsUse};
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::interrupt::{AGAIN, ENDING, ONCE};
use crate::{metrics, output};
use lowtide_files::output::{CommandFiles, Role};
use lowtide_host::Event;
use lowtide_host::http::{self, Hosts};
use lowtide_host::live::{Clock, transport_ns};
use lowtide_host::nbd::tls::read_certificates;
use lowtide_host::nbd::{Ended, Listener, Settings, Tls, listen, negotiate};
use lowtide_live::{ControlSocket, Data, LiveDrive, Pace, RECORDING, Recorder, ResolvedOffer, Service};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::time::Instant;

/// The default address of NBD servers.
pub(super) const DEFAULT_ADDRESS: &str = "127.0.0.1:10809";

/// A socket of clients or orders.
const SOCKET: Role = Role::new("the socket", "--unix PATH");

/// Serves until a signal, or until the client at stdin disconnects.
pub fn run(arguments: &ServeArguments) -> Result<u8, Failure> {
    let known = look_up(arguments)?;
    let buffers = arguments.clients.buffers()?;
    let tls = tls(arguments)?;
    let stop = Event::new().map_err(Failure::failed)?;
    let settings = Settings { tls, stop: Some(stop.clone()), ..Settings::default() };
    let listener = listener(arguments)?;
    // The control socket opens together with the clients' sockets: a program that sees these sockets can send orders,
    // which wait like clients.
    let orders = orders(arguments)?;
    // The client gets standard output before anything is printed, because only the client may write to it.
    let client = if arguments.stdio { Some(listen::stdio()?) } else { None };
    let clock = Clock::new();
    let pace = arguments.drive.pace(|| transport_ns(clock)).map_err(Failure::failed)?;
    let mut drives = Vec::new();
    for known in &known {
        let drive = known.open(pace)?;
        if let Some(warning) = drive.warning() {
            output::say(format_args!("warning: {}: {warning}", known.name));
        }
        drives.push(drive);
    }
    if let Some(path) = &arguments.record {
        drives[0].record(Some(Recorder::new(path)?));
    }
    let mut service = Service::start(drives, clock, arguments.stdio, buffers).map_err(Failure::failed)?;
    if let Some(orders) = orders {
        service.obey(orders);
    }
    let metrics = match arguments.metrics {
        Some(address) => {
            let hosts = Hosts::new(&arguments.accept_host, "--accept-host");
            Some(metrics::serve(address, hosts, service.handle().clone())?)
        }
        None => None,
    };
    if arguments.drive.rt
        && let Err(error) = service.real_time()
    {
        output::say(format_args!("warning: cannot enable real-time scheduling (--rt): {error}"));
    }
    // Signals are caught before the addresses are printed, since a signal may follow at once.
    stop_on_signals(&stop, &service)?;
    print_addresses(
        arguments,
        &known,
        &listener,
        &settings,
        pace,
        metrics.as_ref().map(http::Server::address),
    );
    let handle = service.handle().clone();
    let exports = service.exports().to_vec();
    match client {
        Some(transport) => match negotiate(transport, &exports, &settings) {
            Ok((transport, agreed)) => handle.serve(transport, agreed),
            Err(ended) => {
                report_end("the client at stdin", ended);
                handle.stop();
            }
        },
        None => {
            let serve = |transport, agreed| handle.serve(transport, agreed);
            listener.run(&exports, &settings, serve, report_end)?;
        }
    }
    end(&known, service.wait())
}

/// Reports a connection that did not end normally.
pub(super) fn report_end(peer: &str, ended: Ended) {
    if !ended.is_ordinary() {
        output::say(format_args!("{peer} {ended}"));
    }
}

/// Looks up the drives and checks their files, before anything is made.
fn look_up(arguments: &ServeArguments) -> Result<Vec<ResolvedOffer>, Failure> {
    let several = arguments.devices.len() > 1;
    let mut all = Vec::<ResolvedOffer>::new();
    for device in &arguments.devices {
        let (name, device) = match device.split_once('=') {
            Some((name, device)) => (Some(name.to_owned()), device),
            None => (None, device.as_str()),
        };
        let mut offer = arguments.drive.offer(name, device, all.len() as u64);
        offer.read_only = arguments.read_only;
        let known = offer.look_up()?;
        if all.iter().any(|other| other.name == known.name) {
            let message = format!("two exports are called `{}`", known.name);
            return Err(Failure::usage(message, "rename one: NAME=DEVICE"));
        }
        all.push(known);
    }
    if several && arguments.record.is_some() {
        let help = "serve one drive, or begin with `lowtide drive record start SOCKET FILE --drive NAME`";
        return Err(Failure::usage("`--record` records one drive, and several are served", help));
    }
    for value in arguments.data.iter().filter(|value| *value != "memory") {
        let (index, path) = drive_of(value, &all, several, "data")?;
        all[index].keep_data(Data::File(path));
    }
    for value in &arguments.state {
        let (index, path) = drive_of(value, &all, several, "state")?;
        all[index].keep_state(path);
    }
    let mut files = CommandFiles::default();
    for known in &all {
        known.check_outputs(&mut files)?;
    }
    if let Some(path) = &arguments.record {
        lowtide_files::output::in_place(RECORDING, path, &files)?;
        files.add("the recording", path);
    }
    for path in arguments.unix.iter().chain(&arguments.control) {
        lowtide_files::output::in_place(SOCKET, path, &files)?;
    }
    Ok(all)
}

/// The index of the drive and the path in `NAME=FILE`, or in `FILE` if there is one drive.
fn drive_of(
    value: &str,
    all: &[ResolvedOffer],
    several: bool,
    key: &str,
) -> Result<(usize, PathBuf), Failure> {
    let named = value.split_once('=').and_then(|(name, path)| {
        all.iter().position(|known| known.name == name).map(|index| (index, PathBuf::from(path)))
    });
    if !several {
        return Ok(named.unwrap_or((0, PathBuf::from(value))));
    }
    named.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
        Failure::usage(
            format!("`--{key} {value}` names none of the drives"),
            format!("write `--{key} NAME=FILE`; the names are {}", names.join(", ")),
        )
    })
}

fn tls(arguments: &ServeArguments) -> Result<Tls, Failure> {
    let Some(folder) = arguments.certificates.as_deref().filter(|_| arguments.tls != TlsUse::Off) else {
        return Ok(Tls::Off);
    };
    let config = read_certificates(folder, arguments.tls_verify_peer)?;
    Ok(if arguments.tls == TlsUse::Require { Tls::Required(config) } else { Tls::Offered(config) })
}

fn listener(arguments: &ServeArguments) -> Result<Listener, Failure> {
    let mut listener = Listener::new(usize::from(arguments.clients.max_clients));
    if arguments.stdio {
        return Ok(listener);
    }
    let mut sockets = listener.activated()?;
    if let Some(path) = &arguments.unix {
        listener.unix(path)?;
        sockets += 1;
    }
    if let Some(address) = &arguments.tcp {
        listener.tcp(address)?;
        sockets += 1;
    }
    if sockets == 0 {
        listener.tcp(DEFAULT_ADDRESS)?;
    }
    Ok(listener)
}

/// The control socket.
fn orders(arguments: &ServeArguments) -> Result<Option<ControlSocket>, Failure> {
    let default = || arguments.unix.as_deref().map(super::control::control_socket);
    let Some(path) = arguments.control.clone().or_else(default) else {
        return Ok(None);
    };
    let orders = ControlSocket::at(&path).map_err(|error| {
        Failure::usage(
            format!("cannot take orders at {}: {error}", path.display()),
            "name another path with `--control PATH`",
        )
    })?;
    Ok(Some(orders))
}

/// Prints the drives and the addresses.
fn print_addresses(
    arguments: &ServeArguments,
    known: &[ResolvedOffer],
    listener: &Listener,
    settings: &Settings,
    pace: Pace,
    metrics: Option<std::net::SocketAddr>,
) {
    let tls = !matches!(settings.tls, Tls::Off);
    for drive in known {
        let (name, title) = (&drive.name, &drive.title);
        output::say(format_args!("{name}: {title}, {}, {}", drive.usable(), drive.describe_cache()));
    }
    match pace {
        Pace::NoDelay => output::say("requests complete at once"),
        Pace::RealTime { transport_ns } => output::say(format_args!(
            "requests complete at the model's times, less {:.0} us for their transport",
            transport_ns as f64 / 1e3
        )),
    }
    for address in listener.addresses() {
        match address.uri(tls) {
            Some(uri) => output::say(format_args!("serving at {uri}")),
            None => output::say(format_args!("serving at {address:?}")),
        }
    }
    // The verbs of `drive` also accept the unix socket's path.
    if let Some(path) = arguments.control.as_ref().or(arguments.unix.as_ref()) {
        output::say(format_args!("counters: lowtide drive stat {}", path.display()));
    }
    if let Some(address) = metrics {
        output::say(format_args!("Prometheus: http://{address}/metrics"));
    }
}

/// Ends the service at the first signal.
fn stop_on_signals(stop: &Event, service: &Service<LiveDrive>) -> Result<(), Failure> {
    let mut signals = Signals::new(ENDING).map_err(Failure::failed)?;
    let (stop, handle) = (stop.clone(), service.handle().clone());
    let stopped = stop.clone();
    let ends = handle.clone();
    std::thread::spawn(move || {
        let mut first = None;
        for signal in signals.forever() {
            match first {
                None => {
                    stop.set();
                    handle.stop();
                    first = Some(Instant::now());
                }
                Some(first) if Instant::elapsed(&first) < ONCE || !AGAIN.contains(&signal) => {}
                Some(_) => {
                    output::say("ended at once: the state of the drives is not written");
                    std::process::exit(i32::from(INTERRUPTED));
                }
            }
        }
    });
    // An order to shut down ends the loop, and the end of the loop ends the listener.
    std::thread::spawn(move || {
        ends.ended();
        stopped.set();
    });
    Ok(())
}

/// Closes drives, and reports errors and the lateness of answers.
pub(super) fn end(known: &[ResolvedOffer], drives: Vec<LiveDrive>) -> Result<u8, Failure> {
    let mut code = 0;
    for (known, mut drive) in known.iter().zip(drives) {
        if let Some(recorder) = drive.record(None)
            && let Err(error) = recorder.finish()
        {
            output::say(format_args!("error: the recording of {} is incomplete: {error}", drive.name()));
            code = FAILED;
        }
        let stat = drive.stat(0);
        if let Some(late) = stat.lateness.filter(|late| late.count > 0) {
            output::say(format_args!(
                "{}: {} requests answered; late by {:.0} us in the median, {:.0} us at p99",
                stat.name, late.count, late.p50_us, late.p99_us
            ));
        }
        if let Some(warning) = stat.too_slow() {
            output::say(format_args!("warning: {}: {warning}", stat.name));
        }
        if let Err(error) = known.close(drive) {
            output::say(format_args!("error: {} did not close cleanly: {error}", known.name));
            code = FAILED;
        }
    }
    Ok(code)
}
