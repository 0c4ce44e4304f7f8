//! Which hosts a server answers for ([`Hosts`]), so that no page of another site reads it through a name of its own that leads here
//! (DNS rebinding).
//!
//! Not here: ports; one that is forwarded has another number.

use super::head::Host;
use std::fmt;
use std::net::IpAddr;

/// Hosts that a server answers for: `localhost` and loopback addresses, the address it listens at or, where that is every address,
/// the one a client reached, this machine's name, and those that were added.
#[derive(Debug, Clone)]
pub struct Hosts {
    own: Vec<Host>,
    refusal: String,
}

/// A text that is neither a name nor an address of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadHost;

impl fmt::Display for BadHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write a name or an address without a port, such as `lab.example` or `192.0.2.7`")
    }
}

impl std::error::Error for BadHost {}

impl Hosts {
    /// The hosts of this machine and those in `others`; `option` is how users add one.
    pub fn new(others: &[Host], option: &str) -> Hosts {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Hosts::named(&name, others, option)
    }

    fn named(name: &str, others: &[Host], option: &str) -> Hosts {
        let own = others.iter().cloned().chain(Host::parse(name)).collect();
        let refusal = format!(
            "nothing is served for this host: only for localhost, this machine's name and address, and hosts named with \
             {option}\n"
        );
        Hosts { own, refusal }
    }

    /// Reads a host that a user adds.
    ///
    /// [`BadHost`] if it is neither a name nor an address, or has a port.
    /// [`BadHost`] where it is neither a name nor an address, or has a port.
    pub fn parse(text: &str) -> Result<Host, BadHost> {
        // A port would be ignored, and an address within brackets is one with or without them.
        let host = text.parse::<IpAddr>().map(|address| Host::Address(address.to_canonical())).ok();
        let bracketed = text.starts_with('[') && text.ends_with(']');
        let portless = || (bracketed || !text.contains(':')).then(|| Host::parse(text)).flatten();
        host.or_else(portless).ok_or(BadHost)
    }

    /// Whether a request for `host` is answered; it reached this machine at `reached`.
    pub(super) fn accept(&self, host: &Host, reached: IpAddr) -> bool {
        match host {
            Host::Address(address) => {
                address.is_loopback()
                    // A name may lead elsewhere, an address does not; this one leads to this machine.
                    || address.is_unspecified()
                    || *address == reached.to_canonical()
                    || self.own.contains(host)
            }
            Host::Name(name) => name == "localhost" || self.own.contains(host),
        }
    }

    /// The answer to clients that ask for another host.
    pub(super) fn refusal(&self) -> &str {
        &self.refusal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_this_machine_and_those_that_were_added_are_answered() {
        let added =
            ["lab.example", "192.0.2.7", "[2001:db8::1]"].map(|text| Hosts::parse(text).expect("a host"));
        let hosts = Hosts::named("Bench7", &added, "--accept-host");
        let accepted = |text: &str| {
            hosts.accept(&Host::parse(text).expect("a host"), "10.0.0.5".parse().expect("an address"))
        };
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:80",
            "0.0.0.0:80",
            "10.0.0.5:80",
            "[::ffff:10.0.0.5]:80",
            "bench7",
            "bench7.:80",
            "lab.example:80",
            "192.0.2.7",
            "[2001:db8::1]:80",
        ] {
            assert!(accepted(host), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:80",
            "10.0.0.1:80",
            "localhost.evil.example",
            "bench7.evil.example",
            "a.lab.example",
        ] {
            assert!(!accepted(host), "{host}");
        }
        assert!(hosts.refusal().contains("--accept-host"));
    }

    #[test]
    fn hosts_to_add_have_no_port() {
        for text in ["", "a:80", "http://a", "a/b", "a b", "[::1]:80", "*"] {
            assert_eq!(Hosts::parse(text), Err(BadHost), "{text}");
        }
        assert_eq!(Hosts::parse("::1"), Hosts::parse("[::1]"));
    }
}
