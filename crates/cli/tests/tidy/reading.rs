//! Parsing for the rules: code without comments and strings, and dependencies in manifests. Other syntax is not
//! parsed.

/// The text before its final test module.
pub fn without_tests(text: &str) -> &str {
    let mut modules = text.match_indices("#[cfg(test)]\nmod ");
    let body = |at: usize| text[at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
    modules.find(|(at, _)| body(*at)).map_or(text, |(at, _)| &text[..at])
}

/// Returns whether `text` contains `word` with no letter, digit or underscore next to it.
pub fn has_word(text: &str, word: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let after = text[at + word.len()..].chars().next();
        !text[..at].chars().next_back().is_some_and(inner) && !after.is_some_and(inner)
    })
}

/// The names in all dependency tables of a Cargo.toml.
pub fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            let (parent, name) = table.rsplit_once('.').unwrap_or(("", table));
            inside = table.ends_with("dependencies");
            if parent.ends_with("dependencies") {
                names.push(name.to_owned());
            }
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            names.extend(line.split(['.', '=', ' ']).next().map(|name| name.trim_matches('"').to_owned()));
        }
    }
    names
}

/// Rust source without its comments, and without its string literals unless `strings` is set.
pub fn code(text: &str, strings: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let in_name = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => plain_string(rest),
            'r' if !in_name => raw_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        if length == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.push_str(if strings && c != '/' { &rest[..length] } else { " " });
            rest = &rest[length..];
        }
    }
    out
}

pub fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

pub fn plain_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the raw string at the start of `text`; 0 if there is none.
pub fn raw_string(text: &str) -> usize {
    let hashes = text[1..].chars().take_while(|c| *c == '#').count();
    let begin = 1 + hashes + 1;
    if text.as_bytes().get(begin - 1) != Some(&b'"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    text[begin..].find(&end).map_or(text.len(), |at| begin + at + end.len())
}

/// The length of the character literal at the start of `text`; 0 for a lifetime.
pub fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(0, |at| 3 + at + 1),
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}
