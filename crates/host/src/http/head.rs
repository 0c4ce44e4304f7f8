//! The head of a request ([`Request`]): its request line and headers, parsed by `httparse`.
//!
//! A head is parsed once, when it is complete ([`end`]). Only `Host`, `Connection` and headers that announce a body
//! are used.

use std::net::IpAddr;

/// The maximum length of a head in bytes.
pub const LONGEST: usize = 16 << 10;

const MOST_HEADERS: usize = 64;

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// Any other method.
    Other,
}

/// A request without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The host without its port; `None` if an HTTP/1.0 client names none.
    pub host: Option<Host>,
    /// Whether the client may send another request on the connection.
    pub keep_alive: bool,
    /// Whether a body follows.
    pub body: bool,
}

/// A host as clients name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// An address. IPv4 addresses mapped into IPv6 are converted.
    Address(IpAddr),
    /// A name in lower case, without a trailing dot.
    Name(String),
}

/// An invalid head, with its HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// 400: not HTTP, no host, or several.
    Malformed,
    /// 431: longer than [`LONGEST`], or too many headers.
    TooLarge,
    /// 505: a version other than 1.0 and 1.1.
    Version,
}

impl Host {
    /// Parses a host with an optional port: `localhost`, `10.0.0.1:80`, `[::1]:80`.
    pub fn parse(text: &str) -> Option<Host> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                (address, port.strip_prefix(':').or(port.is_empty().then_some(""))?)
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        if !port.bytes().all(|byte| byte.is_ascii_digit()) || port.len() > 5 {
            return None;
        }
        if let Ok(address) = name.parse::<IpAddr>() {
            let bracketed = text.starts_with('[');
            return (bracketed == address.is_ipv6()).then_some(Host::Address(address.to_canonical()));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_name = !name.is_empty() && name.bytes().all(plain) && !text.starts_with('[');
        is_name.then(|| Host::Name(name.to_ascii_lowercase()))
    }
}

/// The end of the head at the start of `bytes`, if it is complete. The first `seen` bytes contain no end.
pub fn end(bytes: &[u8], seen: usize) -> Option<usize> {
    // The end marker may begin in these bytes.
    let from = seen.saturating_sub(3);
    let ends = |at: usize| match bytes[at..] {
        [b'\n', b'\n', ..] => Some(at + 2),
        [b'\n', b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    };
    (from..bytes.len()).find_map(ends)
}

/// Returns whether bytes may be the start of a request, unlike those of TLS.
pub fn begins(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|byte| byte.is_ascii_alphabetic())
}

/// Parses a complete head.
pub fn parse(bytes: &[u8]) -> Result<Request, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(Fault::TooLarge),
        Err(httparse::Error::Version) => return Err(Fault::Version),
        Ok(httparse::Status::Partial) | Err(_) => return Err(Fault::Malformed),
    }
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(Fault::Malformed);
    };
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => Method::Other,
    };
    let values = |name: &'static str| {
        let named = parsed.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| str::from_utf8(header.value).map(str::trim).map_err(|_| Fault::Malformed))
    };
    let mut hosts = values("host");
    let named = hosts.next().transpose()?;
    if hosts.next().is_some() || (named.is_none() && version > 0) {
        return Err(Fault::Malformed);
    }
    // The host of an absolute target takes precedence over the header.
    let (named, path) = match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            let at = rest.find(['/', '?']).unwrap_or(rest.len());
            (Some(&rest[..at]), &rest[at..])
        }
        _ => (named, target),
    };
    let host = named.map(|named| Host::parse(named).ok_or(Fault::Malformed)).transpose()?;
    let mut keep_alive = version > 0;
    for value in values("connection") {
        for option in value?.split(',').map(str::trim) {
            keep_alive = match () {
                () if option.eq_ignore_ascii_case("close") => false,
                () if option.eq_ignore_ascii_case("keep-alive") => true,
                () => keep_alive,
            };
        }
    }
    let mut body = values("transfer-encoding").next().is_some();
    for length in values("content-length") {
        body |= length? != "0";
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
    Ok(Request { method, path, host, keep_alive, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Option<Host> {
        Some(Host::Name(name.to_owned()))
    }

    fn address(text: &str) -> Option<Host> {
        Some(Host::Address(text.parse().expect("an address")))
    }

    #[test]
    fn hosts_are_names_or_addresses_with_or_without_a_port() {
        for (text, host) in [
            ("localhost", name("localhost")),
            ("LocalHost.:80", name("localhost")),
            ("127.0.0.1:8080", address("127.0.0.1")),
            ("[::1]", address("::1")),
            ("[::1]:80", address("::1")),
            ("[::ffff:10.0.0.1]:80", address("10.0.0.1")),
            ("127.0.0.1.evil.example:80", name("127.0.0.1.evil.example")),
        ] {
            assert_eq!(Host::parse(text), host, "{text}");
        }
        for text in
            ["", ":80", "::1", "a b", "a/b", "user@a", "a:b", "[::1", "[10.0.0.1]", "[a]:1", "a:123456", "."]
        {
            assert_eq!(Host::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_head_ends_at_an_empty_line_however_it_arrives() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        let whole = head.len() - 4;
        for bare in [head.as_slice(), b"GET / HTTP/1.1\nHost: a\n\nrest"] {
            let whole = bare.len() - 4;
            assert_eq!(end(bare, 0), Some(whole));
            assert!((0..whole).all(|length| end(&bare[..length], 0).is_none()));
        }
        for seen in 0..whole {
            assert_eq!(end(head, seen), Some(whole), "{seen} bytes were seen before");
        }
    }

    #[test]
    fn what_matters_of_a_request_is_read() {
        let parse = |text: &str| parse(text.as_bytes());
        let request =
            parse("GET /report.json?x=1 HTTP/1.1\r\nhost: LOCALHOST:80\r\n\r\n").expect("a request");
        let expected = Request {
            method: Method::Get,
            path: "/report.json".to_owned(),
            host: name("localhost"),
            keep_alive: true,
            body: false,
        };
        assert_eq!(request, expected);
        let old = parse("HEAD / HTTP/1.0\r\n\r\n").expect("a request");
        assert_eq!((old.method, old.host, old.keep_alive), (Method::Head, None, false));
        assert!(parse("GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n").expect("a request").keep_alive);
        assert!(
            !parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("a request").keep_alive
        );
        let absolute = parse("GET http://b:1?x HTTP/1.1\r\nHost: a\r\n\r\n").expect("a request");
        assert_eq!((absolute.host, absolute.path.as_str()), (name("b"), "/"));
        for (header, body) in [
            ("Content-Length: 0", false),
            ("Content-Length: 1", true),
            ("Content-Length: x", true),
            ("Transfer-Encoding: chunked", true),
        ] {
            let post = parse(&format!("POST / HTTP/1.1\r\nHost: a\r\n{header}\r\n\r\n")).expect("a request");
            assert_eq!((post.method, post.body), (Method::Other, body), "{header}");
        }
    }

    #[test]
    fn what_is_no_request_has_its_status() {
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(MOST_HEADERS));
        for (text, fault) in [
            ("GET / HTTP/1.1\r\n\r\n", Fault::Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Fault::Malformed),
            ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Fault::Malformed),
            ("GET /\r\n\r\n", Fault::Malformed),
            ("x\r\n\r\n", Fault::Malformed),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Fault::Malformed),
            ("PRI * HTTP/2.0\r\n\r\n", Fault::Version),
            (&many, Fault::TooLarge),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(fault), "{text}");
        }
        assert!(!begins(b"\x16\x03\x01") && begins(b"GET") && begins(b""));
    }
}
