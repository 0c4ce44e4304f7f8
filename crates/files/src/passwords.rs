//! Finds passwords in text, so that the text can be shown, stored or logged without them.
//!
//! Two kinds of text are accepted:
//! - A file ([`spans`]): TOML, valid or not, since error messages also quote files that do not parse. The value of
//!   `servers` and every server address are searched. If the end of a password is unclear, more text is hidden.
//! - Prose ([`without_in_prose`]): a message that quotes user input.
//!
//! The syntax of addresses is in `lowtide_oltp::passwords`.
//!
//! # Not handled
//! Passwords outside of server addresses.

use lowtide_core::suggest::nearest;
use lowtide_oltp::{HIDDEN, passwords, without_password};
use std::ops::Range;
use toml::de::DeValue;

/// Keys whose values are addresses, with or without a scheme. Similar keys count too.
const KEYS: [&str; 2] = ["servers", "server"];
/// Passwords that are placeholders in example addresses, and stay visible.
const EXAMPLES: [&str; 2] = ["password", "PASSWORD"];

/// Maximum number of characters of a key that are compared; longer keys do not resemble [`KEYS`].
const LONGEST_KEY: usize = 40;
/// Maximum number of addresses kept in [`Hidden::quoted`].
const MOST_QUOTED: usize = 1000;

/// The passwords found in a file.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    /// Byte ranges of the passwords, sorted and disjoint.
    pub spans: Vec<Range<usize>>,
    /// Addresses as a message may quote them, each with its redacted form.
    pub quoted: Vec<(String, String)>,
}

impl Hidden {
    /// Searches a file.
    pub fn of(text: &str) -> Hidden {
        let mut finder = Finder {
            text,
            at: 0,
            line_end: 0,
            addressed: false,
            depth: 0,
            word: 0..0,
            in_word: false,
            found: Hidden::default(),
        };
        finder.run();
        let Hidden { spans, quoted } = finder.found;
        Hidden { spans: apart(spans), quoted }
    }
}

/// Byte ranges of the passwords in a file, sorted and disjoint.
pub fn spans(text: &str) -> Vec<Range<usize>> {
    Hidden::of(text).spans
}

/// Redacts the passwords in a file.
pub fn without(text: &str) -> String {
    replaced(text, &spans(text))
}

/// Redacts the passwords in the addresses of a message. Example addresses stay unchanged.
pub fn without_in_prose(text: &str) -> String {
    let mut found = Vec::new();
    let mut read = 0;
    for start in schemes(text) {
        if start < read {
            continue;
        }
        let rest = &text[start..];
        let before = text[..start].chars().next_back();
        let ends = |c: char| match before {
            Some(quote @ ('"' | '\'' | '`')) => c == quote || c == '\n',
            _ => c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | ','),
        };
        let end = rest.find(ends).unwrap_or(rest.len());
        read = start + end;
        let secret = passwords(&rest[..end]).into_iter().map(|span| start + span.start..start + span.end);
        found.extend(secret.filter(|span| !EXAMPLES.contains(&&text[span.clone()])));
    }
    replaced(text, &apart(found))
}

/// Replaces `spans`, which must be sorted and disjoint, by `***`.
pub fn replaced(text: &str, spans: &[Range<usize>]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for span in spans {
        shown.push_str(&text[from..span.start]);
        shown.push_str(HIDDEN);
        from = span.end;
    }
    shown + &text[from..]
}

fn apart(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match apart.last_mut() {
            Some(last) if span.start < last.end || span == *last => last.end = last.end.max(span.end),
            _ => apart.push(span),
        }
    }
    apart
}

/// The positions at which schemes begin, such as the `m` of `mariadb://`.
fn schemes(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices("://").filter_map(|(at, _)| {
        let start = text[..at].trim_end_matches(is_of_scheme).len();
        (start < at).then_some(start)
    })
}

fn is_of_scheme(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+-.".contains(c)
}

fn is_key_of_addresses(key: &str) -> bool {
    let key = key.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c));
    let from = key.char_indices().rev().nth(LONGEST_KEY).map_or(0, |(at, _)| at);
    let end = key[from..].rsplit(['.', ' ', '\'', '"']).next().unwrap_or(key);
    nearest(end, KEYS).is_some()
}

/// Scans a file for passwords, whether or not it is valid TOML.
struct Finder<'t> {
    text: &'t str,
    at: usize,
    /// Cached result of [`Finder::end_of_line`].
    line_end: usize,
    /// Whether the current value belongs to one of [`KEYS`].
    addressed: bool,
    /// Nesting depth of open lists in that value.
    depth: u32,
    /// The text that becomes the key at the next `=`.
    word: Range<usize>,
    /// Whether `at` is inside a word, where no scheme can begin.
    in_word: bool,
    found: Hidden,
}

impl Finder<'_> {
    fn run(&mut self) {
        while let Some(c) = self.text[self.at..].chars().next() {
            let in_word = std::mem::take(&mut self.in_word);
            match c {
                '"' | '\'' => self.string(c),
                '#' => {
                    let end = self.end_of_line();
                    self.embedded(self.at + 1..end, false);
                    self.at = end;
                }
                '=' => {
                    self.addressed = is_key_of_addresses(&self.text[self.word.clone()]);
                    self.depth = 0;
                    self.word = self.at + 1..self.at + 1;
                    self.at += 1;
                }
                '\n' => {
                    self.addressed &= self.depth > 0;
                    self.word = self.at + 1..self.at + 1;
                    self.at += 1;
                }
                '[' | '{' | ',' | ']' | '}' => {
                    match c {
                        '[' => self.depth += 1,
                        ']' => self.depth = self.depth.saturating_sub(1),
                        _ => {}
                    }
                    self.word = self.at + 1..self.at + 1;
                    self.at += 1;
                }
                c if c.is_whitespace() => {
                    self.at += c.len_utf8();
                    self.word.end = self.at;
                }
                _ => self.bare(c, in_word),
            }
        }
    }

    /// Scans unquoted text: a key, a number, or an address without its quotes.
    fn bare(&mut self, c: char, in_word: bool) {
        if self.addressed || !in_word && self.is_scheme() {
            let line = self.end_of_line();
            let rest = &self.text[self.at..line];
            // Command-line options may follow.
            let end = rest.find(" --").map_or(line, |end| self.at + end);
            self.address(self.at..end, true);
            self.at = end;
            return;
        }
        self.at += c.len_utf8();
        self.word.end = self.at;
        self.in_word = is_of_scheme(c);
    }

    /// Whether a scheme begins here.
    fn is_scheme(&self) -> bool {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !is_of_scheme(c)).unwrap_or(rest.len());
        end > 0 && rest[end..].starts_with("://")
    }

    /// Scans a quoted string, whether or not it is closed.
    fn string(&mut self, quote: char) {
        let start = self.at;
        let three: String = std::iter::repeat_n(quote, 3).collect();
        let is_long = self.text[start..].starts_with(&three);
        let from = start + if is_long { 3 } else { 1 };
        let line = self.end_of_line();
        let limit = if is_long { self.text.len() } else { line };
        let closed = self.closing(from..limit, quote, is_long);
        let mut content = from..closed.unwrap_or(limit);
        self.at = closed.map_or(limit, |end| end + if is_long { 3 } else { 1 });
        let follows = self.text[self.at.min(line)..line].trim_start();
        let is_key = follows.starts_with(['=', '.']);
        let is_clean = is_key || follows.is_empty() || follows.starts_with([',', ']', '}', '#', ' ']);
        let has_address = self.addressed && !is_key || schemes(&self.text[content.clone()]).next().is_some();
        if has_address && !is_long && !(is_clean || follows.starts_with("--")) {
            // A quote inside the password ended the string too early.
            content.end = line;
            self.at = line;
        }
        self.embedded(content, quote == '"');
        self.word.end = self.at;
    }

    /// Position of the closing quote of a string whose content begins at `range.start`.
    fn closing(&self, range: Range<usize>, quote: char, is_long: bool) -> Option<usize> {
        let mut skip = false;
        for (at, c) in self.text[range.clone()].char_indices() {
            let at = range.start + at;
            match c {
                _ if skip => skip = false,
                '\\' if quote == '"' => skip = true,
                c if c == quote => {
                    let rest = &self.text.as_bytes()[at..range.end];
                    if !is_long || rest.len() >= 3 && rest[..3].iter().all(|byte| *byte == quote as u8) {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Searches a string or a comment for addresses.
    fn embedded(&mut self, range: Range<usize>, escaped: bool) {
        let text = &self.text[range.clone()];
        let begins = text.len() - text.trim_start().len();
        let mut read = 0;
        for start in schemes(text) {
            if start == begins {
                break;
            }
            if start >= read {
                let rest = &text[start..];
                read = start + rest.find(char::is_whitespace).unwrap_or(rest.len());
                self.address(range.start + start..range.start + read, escaped);
            }
        }
        if self.addressed || schemes(text).next() == Some(begins) {
            self.address(range.clone(), escaped);
        }
        // `servers = …` in a comment, or in the quoted part of a command.
        let mut read = 0;
        for (equals, _) in text.match_indices('=') {
            if equals < read {
                continue;
            }
            let before = &text[read..equals];
            let line = before.rfind('\n').map_or(0, |at| at + 1);
            if is_key_of_addresses(&before[line..]) {
                let end = text[equals..].find('\n').map_or(text.len(), |end| equals + end);
                self.address(range.start + equals + 1..range.start + end, escaped);
                read = end;
            } else {
                read = equals + 1;
            }
        }
    }

    /// Hides the passwords of an address. If the address contains escapes, everything after its scheme is hidden,
    /// because an escape may stand for `:` or `@`.
    fn address(&mut self, range: Range<usize>, escaped: bool) {
        let text = &self.text[range.clone()];
        let has_escapes = escaped && text.contains('\\');
        let spans = match has_escapes {
            true => {
                let start = text.find("://").map_or(0, |end| end + 3);
                std::iter::once(start..text.len()).collect()
            }
            false => passwords(text),
        };
        if !spans.is_empty() && self.found.quoted.len() < MOST_QUOTED {
            let string = format!("\"{text}\"");
            let resolved = DeValue::parse(&string).ok().filter(|_| has_escapes);
            if let Some(DeValue::String(resolved)) = resolved.as_ref().map(|it| it.get_ref()) {
                self.found.quoted.push((resolved.to_string(), without_password(resolved)));
            }
            self.found.quoted.push((text.to_owned(), replaced(text, &spans)));
        }
        let here = spans.into_iter().map(|span| range.start + span.start..range.start + span.end);
        self.found.spans.extend(here);
    }

    /// End of the current line.
    fn end_of_line(&mut self) -> usize {
        if self.line_end < self.at || self.line_end == 0 {
            self.line_end = self.text[self.at..].find('\n').map_or(self.text.len(), |end| self.at + end);
        }
        self.line_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses in every form. Every password is made of the parts `sEc` and `ReT`, which must never be shown.
    const SECRETS: [&str; 13] = [
        "mariadb://me:sEcReT@db:3306/x",
        "mariadb://:sEcReT@db/x",
        "mariadb://me:sEc%40ReT@db/x",
        "mariadb://me:sEc@ReT@db/x",
        "mariadb://me:sEc:ReT@db/x",
        "mariadb://me:sEc/ReT@db/x",
        "mariadb://me:sEc#ReT@db/x",
        "mariadb://me:sEc?ReT@db/x",
        "postgresql://me:sEcReT@%2Frun%2Fpg:5433/x?sslmode=disable",
        "postgres://me@db/x?password=sEcReT",
        "postgre://me:sEcReT@db/x",
        "mysql://me:sEcReT/x",
        "me:sEcReT@db/x",
    ];

    fn assert_hidden(text: &str, shown: &str) {
        let seen = ["sEc", "ReT"].into_iter().find(|part| shown.contains(part));
        assert!(seen.is_none(), "{text}\nis shown as\n{shown}");
    }

    #[test]
    fn passwords_of_servers_are_hidden_however_they_are_written() {
        for secret in SECRETS {
            for text in [
                format!("[oltp]\nservers = \"{secret}\"\nwarehouses = 4\n"),
                format!("oltp.servers = '{secret}' # there\n"),
                format!("servers = [\"mariadb://a:b@c/d\", '{secret}',\n  \"{secret}\"]\n"),
                format!("oltp = {{ servers = \"{secret}\", warehouses = 1 }}\n"),
                format!("\"servers\" = \"\"\"{secret}\"\"\"\n"),
                // Not TOML.
                format!("servers = {secret}\n"),
                format!("servers = \"{secret}\n[workload]\n"),
                format!("servers = '{secret}\"\n"),
                format!("servers = [{secret}\n"),
                format!("sevrers = \"{secret}\"\n"),
                // Comments and command lines.
                format!("# servers = \"{secret}\"\n"),
                format!("lowtide run x --set oltp.servers={secret} --seed 1"),
                format!("lowtide run x --set 'oltp.servers=\"{secret}\"' --seed 1"),
                format!("oltp.servers={secret}"),
                format!("servers=[\"{secret}\"]"),
            ] {
                assert_hidden(&text, &without(&text));
            }
        }
    }

    #[test]
    fn a_quote_or_an_escape_in_a_password_hides_more() {
        for text in [
            "servers = \"mariadb://me:sEc\"ReT@db/x\"\n",
            "servers = 'mariadb://me:sEc'ReT@db/x'\n",
            "servers = \"mariadb://me:sEc\\\"ReT@db/x\"\n",
            "servers = \"mariadb://me\\u003AsEcReT@db/x\"\n",
            "servers = \"mariadb://me:sEcReT\\u0040db/x\"\n",
            "servers = \"mariadb\\u003A//me:sEcReT@db/x\"\n",
            "x = \"mariadb://me\\u003AsEcReT@db/x\"\n",
        ] {
            assert_hidden(text, &without(text));
        }
    }

    #[test]
    fn what_is_no_password_stays() {
        for text in [
            "name = \"x\"\nsource = \"https://web.archive.org/web/https://a.b/@c\"\n",
            "title = \"at 10:30 with @all\"\n[oltp]\nservers = \"mariadb://me@db:3306/x\"\nwarehouses = 4\n",
            "[sweep]\nfile_size = [\"40GiB\", \"60GiB\"]\nlayout.x = 'a:b@c'\n",
            "servers = [\"mariadb://me@db/x\"]\ntitle = \"12:30@b\"\n",
            "",
            "\"",
            "'''",
            "=",
        ] {
            assert_eq!(without(text), text);
        }
        let text = "servers = \"mariadb://me:pw@db/x\"\nquestion = \"is a:b@c?\"\n";
        assert_eq!(without(text), text.replace(":pw@", ":***@"));
    }

    #[test]
    fn messages_keep_examples_and_hide_what_they_quote() {
        let of = |text: &str| without_in_prose(text);
        assert_eq!(
            of("`mariadb://me:s e@cret@db/x`: write mariadb://USER:PASSWORD@HOST/DATABASE"),
            "`mariadb://me:***@db/x`: write mariadb://USER:PASSWORD@HOST/DATABASE"
        );
        assert_eq!(
            of("write `postgresql://user:password@host/db`"),
            "write `postgresql://user:password@host/db`"
        );
        assert_eq!(
            of("connecting to mysql://a:b@c:1/d: refused"),
            "connecting to mysql://a:***@c:1/d: refused"
        );
    }
}
