//! Addresses of servers, as they may be shown.
//!
//! Leaves out what an address means: that is its engine's. What is hidden need not be an address that an engine takes: one
//! that is mistyped is shown in an error, and is hidden as well.

/// What stands for a password.
const HIDDEN: &str = "***";

/// Keys of the query part (`?password=…&…`) that hold one.
const KEYS: [&str; 6] = ["password", "passwd", "pass", "pwd", "passphrase", "sslpassword"];

/// An address that can be shown: `mariadb://user:***@host/database?password=***`. Where it is not clear where a password
/// ends, more is hidden than need be.
pub fn without_password(address: &str) -> String {
    let (scheme, rest) = match address.find("://") {
        Some(end) => address.split_at(end + 3),
        None => ("", address),
    };
    format!("{scheme}{}", of_user(&of_query(rest)))
}

/// Hides what stands between the first `:` and the last `@`; without an `@`, what stands where a port would and is none.
fn of_user(rest: &str) -> String {
    if let Some((login, place)) = rest.rsplit_once('@') {
        return match login.split_once(':') {
            Some((user, _)) => format!("{user}:{HIDDEN}@{place}"),
            None => rest.to_owned(),
        };
    }
    match rest.split_once(':') {
        Some((host, after)) if !host.contains(['/', '?', '[']) => {
            let end = after.find(['/', '?']).unwrap_or(after.len());
            let (port, more) = after.split_at(end);
            match port.parse::<u32>() {
                Ok(_) => rest.to_owned(),
                Err(_) => format!("{host}:{HIDDEN}{more}"),
            }
        }
        _ => rest.to_owned(),
    }
}

/// Hides the values of the keys that hold passwords.
fn of_query(rest: &str) -> String {
    let mut shown = String::with_capacity(rest.len());
    for (index, part) in rest.split_inclusive(['?', '&']).enumerate() {
        let (pair, end) = match part.strip_suffix(['?', '&']) {
            Some(pair) => (pair, &part[pair.len()..]),
            None => (part, ""),
        };
        match pair.split_once('=') {
            Some((key, _)) if index > 0 && KEYS.contains(&key.to_ascii_lowercase().as_str()) => {
                shown.push_str(key);
                shown.push('=');
                shown.push_str(HIDDEN);
            }
            _ => shown.push_str(pair),
        }
        shown.push_str(end);
    }
    shown
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
            // Passwords that should have been written with %.
            ("mariadb://me:se@cr/ret:@db/x", "mariadb://me:***@db/x"),
            ("mariadb://me:sec?ret@db/x", "mariadb://me:***@db/x"),
            // What is not an address.
            ("mariadb://me:secret/x", "mariadb://me:***/x"),
            ("me:secret@db", "me:***@db"),
            ("", ""),
        ] {
            assert_eq!(without_password(address), shown, "{address}");
        }
    }
}
