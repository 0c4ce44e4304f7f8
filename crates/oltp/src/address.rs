//! Server addresses, and how their passwords are hidden.
//!
//! The address need not be valid: a mistyped address is shown in an error, and its password is hidden as well. Each
//! engine's module parses the addresses that it supports.

use std::fmt;
use std::ops::Range;

/// The text shown in place of a password.
pub const HIDDEN: &str = "***";

/// Keys of the query part (`?password=…&…`) that hold a password.
const KEYS: [&str; 6] = ["password", "passwd", "pass", "pwd", "passphrase", "sslpassword"];

/// Schemes of web pages: the part behind the host is a path and holds no password.
const PAGES: [&str; 4] = ["http", "https", "ftp", "file"];

/// The address of a server, which prints without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// Wraps an address as the user gave it.
    pub fn new(address: impl Into<String>) -> Address {
        Address(address.into())
    }

    /// The address with its password, for connecting.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Returns an address without its password: `mariadb://user:***@host/database?password=***`. If the end of a password
/// is ambiguous, more than the password is hidden.
pub fn without_password(address: &str) -> String {
    let mut shown = String::with_capacity(address.len());
    let mut from = 0;
    for span in passwords(address) {
        shown.push_str(&address[from..span.start]);
        shown.push_str(HIDDEN);
        from = span.end;
    }
    shown + &address[from..]
}

/// Byte ranges of the passwords in an address, in order and not overlapping. An empty password gives an empty range.
pub fn passwords(address: &str) -> Vec<Range<usize>> {
    let start = address.find("://").map_or(0, |end| end + 3);
    let rest = &address[start..];
    let mut spans = of_query(rest);
    // A password in the query part must not affect the search for the end of the user's password.
    let mut beside = rest.as_bytes().to_vec();
    spans.iter().for_each(|span| beside[span.clone()].fill(b'x'));
    let is_page = start > 0 && PAGES.iter().any(|page| address[..start - 3].eq_ignore_ascii_case(page));
    spans.extend(if is_page { of_page(&beside) } else { of_user(&beside) });
    spans.sort_by_key(|span| (span.start, span.end));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match apart.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => apart.push(span),
        }
    }
    apart.iter().map(|span| span.start + start..span.end + start).collect()
}

/// The range between the first `:` and the last `@`. Without an `@`, the text behind the colon if it is not a port.
fn of_user(rest: &[u8]) -> Option<Range<usize>> {
    let colon = rest.iter().position(|byte| *byte == b':');
    if let Some(at) = rest.iter().rposition(|byte| *byte == b'@') {
        return colon.filter(|colon| *colon < at).map(|colon| colon + 1..at);
    }
    let colon = colon?;
    let (host, after) = (&rest[..colon], &rest[colon + 1..]);
    if host.iter().any(|byte| b"/?[".contains(byte)) {
        return None;
    }
    let end = after.iter().position(|byte| b"/?".contains(byte)).unwrap_or(after.len());
    let is_port = std::str::from_utf8(&after[..end]).is_ok_and(|port| port.parse::<u32>().is_ok());
    (!is_port).then_some(colon + 1..colon + 1 + end)
}

/// The range of the password before the host of a web page's address.
fn of_page(rest: &[u8]) -> Option<Range<usize>> {
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let at = rest[..end].iter().rposition(|byte| *byte == b'@')?;
    let colon = rest[..at].iter().position(|byte| *byte == b':')?;
    Some(colon + 1..at)
}

/// The values of the keys that hold passwords.
fn of_query(rest: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut start = 0;
    for (index, part) in rest.split_inclusive(['?', '&']).enumerate() {
        let pair = part.trim_end_matches(['?', '&']);
        if let Some((key, value)) = pair.split_once('=')
            && index > 0
            && KEYS.contains(&key.to_ascii_lowercase().as_str())
        {
            let from = start + key.len() + 1;
            spans.push(from..from + value.len());
        }
        start += part.len();
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_wherever_they_stand() {
        for (address, shown) in [
            ("mariadb://me:secret@db:3306/x", "mariadb://me:***@db:3306/x"),
            ("mariadb://me@db/x", "mariadb://me@db/x"),
            ("postgresql://db:5432/x?host=/run", "postgresql://db:5432/x?host=/run"),
            ("postgresql://[::1]:5432/x", "postgresql://[::1]:5432/x"),
            (
                "postgresql://me@db/x?password=secret&sslmode=disable",
                "postgresql://me@db/x?password=***&sslmode=disable",
            ),
            (
                "postgresql://db/x?sslmode=disable&PassWord=sec@ret",
                "postgresql://db/x?sslmode=disable&PassWord=***",
            ),
            ("mysql://me:secret@db/x?pwd=secret", "mysql://me:***@db/x?pwd=***"),
            // Passwords that should have been percent-encoded.
            ("mariadb://me:se@cr/ret:@db/x", "mariadb://me:***@db/x"),
            ("mariadb://me:sec?ret@db/x", "mariadb://me:***@db/x"),
            // Invalid addresses.
            ("mariadb://me:secret/x", "mariadb://me:***/x"),
            ("me:secret@db", "me:***@db"),
            ("", ""),
            ("mariadb://:secret@db/x", "mariadb://:***@db/x"),
            ("mariadb://me:@db/x", "mariadb://me:***@db/x"),
            ("mariadb://me:s%3Acr%40et@%2Frun%2Fsock/x", "mariadb://me:***@%2Frun%2Fsock/x"),
            ("mariadb://me:päss@db/x", "mariadb://me:***@db/x"),
            // Web pages, whose paths may hold the same characters.
            ("https://me:secret@host/x:y@z", "https://me:***@host/x:y@z"),
            ("https://archive.org/web/https://a.b/@c", "https://archive.org/web/https://a.b/@c"),
        ] {
            assert_eq!(without_password(address), shown, "{address}");
        }
    }
}
