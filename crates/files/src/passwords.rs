//! Finds the passwords in a text, so that it can be shown, kept or logged without them.
//!
//! Two kinds of text are read. A file ([`spans`]) is TOML, or nearly TOML, since errors also show files that
//! do not parse. In it `servers` and everything that looks like the address of a server is searched; where
//! the end of a password is not clear, more is hidden than need be. Prose ([`without_in_prose`]) is a message
//! that quotes what a user wrote. Not here: what an address is (`lowtide_oltp::passwords`), and passwords
//! outside of addresses.

use lowtide_core::suggest::nearest;
use lowtide_oltp::{HIDDEN, passwords, without_password};
use std::ops::Range;
use toml::de::DeValue;

/// Keys whose values are addresses, even without a scheme.
const KEYS: [&str; 2] = ["servers", "server"];
/// Placeholders for a password in examples of an address.
const EXAMPLES: [&str; 2] = ["password", "PASSWORD"];

/// Most characters of a key that are examined: no longer key resembles one of [`KEYS`].
const LONGEST_KEY: usize = 40;
/// Most addresses that are remembered, for messages that quote them.
const MOST_QUOTED: usize = 1000;

/// The parts of a file that must not be shown.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    /// Spans of the passwords, in order and disjoint.
    pub spans: Vec<Range<usize>>,
    /// Addresses as a message may quote them, each with the form that is shown.
    pub quoted: Vec<(String, String)>,
}

impl Hidden {
    /// Reads a file.
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

/// Spans of the passwords of a file, in order and disjoint.
pub fn spans(text: &str) -> Vec<Range<usize>> {
    Hidden::of(text).spans
}

/// A file without its passwords.
pub fn without(text: &str) -> String {
    replaced(text, &spans(text))
}

/// A message without the passwords of the addresses that it quotes; an example of an address is unchanged.
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

/// A text with `***` in place of spans that are in order and disjoint.
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

/// Where schemes begin: the `m` of `mariadb://`.
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

/// Reads a file from its beginning to its end, whether or not it is TOML.
struct Finder<'t> {
    text: &'t str,
    at: usize,
    /// The end of the line that was last examined.
    line_end: usize,
    /// Whether the current value belongs to one of [`KEYS`].
    addressed: bool,
    /// Depth of open lists in that value.
    depth: u32,
    /// The word before the next `=`.
    word: Range<usize>,
    /// Whether `at` is inside a word, where no scheme begins.
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

    /// What stands without quotes: a key, a number, or an address whose quotes were forgotten.
    fn bare(&mut self, c: char, in_word: bool) {
        if self.addressed || !in_word && self.is_scheme() {
            let line = self.end_of_line();
            let rest = &self.text[self.at..line];
            // Options of a command may follow.
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

    /// A string in quotes, closed or not.
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

    /// Where a string ends that begins before `range`.
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

    /// Addresses in a string or a comment.
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

    /// Hides the passwords of an address; all of it behind its scheme where it is written with escapes, since any of them may stand
    /// for a `:` or an `@`.
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

    /// The end of the line that is read.
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

    /// Addresses in every shape; the part that must not be seen is always made of these letters.
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
                // Elsewhere.
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
