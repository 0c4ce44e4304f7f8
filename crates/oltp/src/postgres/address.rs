//! The address of a server and the login: `postgresql://user:password@host:port/database`.
//!
//! A host that begins with a slash (`%2Fdirectory`, or in `?host=`) is the directory of a unix socket.
//!
//! # Not handled
//! TLS, several hosts, password files and environment variables.

use crate::{HIDDEN, OltpError, without_password};
use std::path::{Path, PathBuf};

/// The default port; it is also in the name of the socket.
pub(super) const PORT: u16 = 5432;

/// The schemes of such addresses.
const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];

/// A server's location and the login.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: Host,
    pub(super) user: String,
    pub(super) password: Option<String>,
    pub(super) database: String,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Address { host, user, password, database } = self;
        let password = password.as_ref().map(|_| HIDDEN);
        f.debug_struct("Address")
            .field("host", host)
            .field("user", user)
            .field("password", &password)
            .field("database", database)
            .finish()
    }
}

/// The location of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// A unix socket.
    Socket(PathBuf),
    /// Host name and port.
    Tcp(String, u16),
}

impl Address {
    /// The address of a server of our own whose sockets are in `directory`.
    pub(super) fn local(directory: &Path) -> Address {
        Address {
            host: Host::Socket(socket(directory, PORT)),
            user: super::instance::USER.to_owned(),
            password: None,
            database: "postgres".to_owned(),
        }
    }

    /// Parses a URL.
    pub(super) fn parse(url: &str) -> Result<Address, OltpError> {
        let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
        let Some(rest) = rest else {
            return Err(invalid(url, "it begins with neither `postgresql://` nor `postgres://`"));
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decode(url, password)?)),
            None => (login, None),
        };
        let (host, port) = place_and_port(url, place)?;
        let mut host = decode(url, host)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("host", value)) => host = decode(url, value)?,
                Some(("sslmode", "disable" | "allow" | "prefer")) => {}
                Some(("sslmode", _)) => return Err(invalid(url, "lowtide speaks to servers without TLS")),
                _ => {
                    let key = pair.split('=').next().unwrap_or_default();
                    let why = format!("`{key}` is not understood; there are `host=` and `sslmode=`");
                    return Err(invalid(url, &why));
                }
            }
        }
        let host = match host.as_str() {
            "" => Host::Tcp("localhost".to_owned(), port),
            path if path.starts_with('/') => Host::Socket(socket(Path::new(path), port)),
            name => Host::Tcp(name.to_owned(), port),
        };
        let user = match decode(url, user)? {
            user if user.is_empty() => "postgres".to_owned(),
            user => user,
        };
        let database = match decode(url, database)? {
            database if database.is_empty() => user.clone(),
            database => database,
        };
        Ok(Address { host, user, password, database })
    }
}

/// The path of the socket in a directory.
pub(super) fn socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

fn place_and_port<'a>(url: &str, place: &'a str) -> Result<(&'a str, u16), OltpError> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    match port.map(str::parse) {
        None => Ok((host, PORT)),
        Some(Ok(port)) => Ok((host, port)),
        Some(Err(_)) => Err(invalid(url, "the port is a whole number up to 65535")),
    }
}

/// Decodes percent-encoding.
fn decode(url: &str, text: &str) -> Result<String, OltpError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let decoded = if byte == b'%' {
            let digits = [rest.next(), rest.next()].map(|digit| (digit? as char).to_digit(16));
            match digits {
                [Some(high), Some(low)] => (high * 16 + low) as u8,
                _ => return Err(invalid(url, "`%` is followed by two hexadecimal digits")),
            }
        } else {
            byte
        };
        bytes.push(decoded);
    }
    String::from_utf8(bytes).map_err(|_| invalid(url, "it is not UTF-8"))
}

/// The error for an invalid URL, which is shown without its password.
fn invalid(url: &str, why: &str) -> OltpError {
    OltpError::Invalid(format!(
        "the server's address `{}`: {why} (postgresql://user:password@host:port/database)",
        without_password(url)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Host {
        Host::Tcp(host.to_owned(), port)
    }

    #[test]
    fn urls_are_read_as_the_documentation_of_libpq_says() {
        let full = Address::parse("postgresql://al%40ice:s%3Acret@db.example:6543/bench").unwrap();
        assert!(!format!("{full:?}").contains("cret"), "{full:?}");
        assert_eq!(full.host, tcp("db.example", 6543));
        assert_eq!((full.user.as_str(), full.password.as_deref()), ("al@ice", Some("s:cret")));
        assert_eq!(full.database, "bench");
        assert_eq!(Address::parse("postgres://").unwrap().host, tcp("localhost", 5432));
        assert_eq!(Address::parse("postgres://[::1]:7/x").unwrap().host, tcp("::1", 7));
        let socket = Host::Socket(PathBuf::from("/run/pg/.s.PGSQL.5433"));
        assert_eq!(Address::parse("postgres://u@%2Frun%2Fpg:5433/x").unwrap().host, socket);
        assert_eq!(Address::parse("postgres://u@:5433/x?host=/run/pg").unwrap().host, socket);
    }

    #[test]
    fn what_is_wrong_is_told_without_the_password() {
        for (url, why) in [
            ("mysql://u:secret@h/x", "begins with"),
            ("postgres://u:secret@h:99999/x", "port"),
            ("postgres://u:secret@h/x?sslmode=require", "TLS"),
            ("postgres://u:secret@h/x?sslcert=y", "not understood"),
            ("postgres://u:secret%4@h/x", "hexadecimal"),
            ("postgres://u@h/x?password=secret", "`password` is not understood"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
