//! The hosts for which a server answers ([`Hosts`]). Requests for other hosts are refused, so that no page of another
//! site can read the server through a name that resolves to this machine (DNS rebinding).
//!
//! Ports are ignored, because forwarding may change them.

use super::head::Host;
use std::net::IpAddr;

/// The hosts for which a server answers: `localhost` and loopback addresses, the address to which the client
/// connected, this machine's name, and added hosts.
#[derive(Debug, Clone)]
pub struct Hosts {
    own: Vec<Host>,
    refusal: String,
}

/// A text that is neither the name nor the address of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write a name or an address without a port, such as `lab.example` or `192.0.2.7`")]
pub struct BadHost;

impl Hosts {
    /// The hosts of this machine and `others`; `option` is the command-line option that adds one.
    pub fn new(others: &[Host], option: &str) -> Hosts {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Hosts::named(&name, others, option)
    }

    fn named(name: &str, others: &[Host], option: &str) -> Hosts {
        let own = others.iter().cloned().chain(Host::parse(name)).collect();
        let refusal = format!(
            "this host is not served: only localhost, this machine's name and address, and hosts named with {option}\n"
        );
        Hosts { own, refusal }
    }

    /// Parses a host that a user adds.
    ///
    /// # Errors
    /// [`BadHost`] if it is neither a name nor an address, or has a port.
    pub fn parse(text: &str) -> Result<Host, BadHost> {
        // A port would be ignored. IPv6 addresses may have brackets.
        let host = text.parse::<IpAddr>().map(|address| Host::Address(address.to_canonical())).ok();
        let bracketed = text.starts_with('[') && text.ends_with(']');
        let portless = || (bracketed || !text.contains(':')).then(|| Host::parse(text)).flatten();
        host.or_else(portless).ok_or(BadHost)
    }

    /// Returns whether to answer a request for `host` from a client that connected to `reached`.
    pub(super) fn accept(&self, host: &Host, reached: IpAddr) -> bool {
        match host {
            Host::Address(address) => {
                address.is_loopback()
                    // Unlike a name, this address always means this machine.
                    || address.is_unspecified()
                    || *address == reached.to_canonical()
                    || self.own.contains(host)
            }
            Host::Name(name) => name == "localhost" || self.own.contains(host),
        }
    }

    /// The answer to requests for other hosts.
    pub(super) fn refusal(&self) -> &str {
        &self.refusal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_this_machine_and_added_ones_are_answered() {
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
