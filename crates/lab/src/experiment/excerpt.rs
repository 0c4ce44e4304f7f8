//! The text of an experiment in errors, without its passwords.
//!
//! `***` replaces a password of any length, so the text after the password moves within the line. Spans are moved
//! with the text. Messages give the column in the text as written, so that an editor finds the position.
//! `lowtide_files::passwords` finds the passwords.

use lowtide_files::passwords::{self, Hidden};
use lowtide_oltp::HIDDEN;
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::fmt;
use std::ops::Range;

/// The most bytes of a line that is shown entirely. Of a longer line, only a part around the fault is shown, because
/// miette cannot draw columns beyond 65535.
const LONGEST_LINE: usize = 500;
/// Bytes shown on both sides of the mark in a longer line.
const AROUND: usize = 60;
/// The maximum length of a mark in bytes.
const MOST_MARKED: usize = 100;

/// A named text.
#[derive(Clone)]
pub(super) struct Excerpt {
    name: String,
    shown: String,
    /// The spans of passwords in the text as written.
    hidden: Vec<Range<usize>>,
    /// Addresses that messages may quote: as written, and as shown.
    quoted: Vec<(String, String)>,
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Excerpt")
            .field("name", &self.name)
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}

impl Excerpt {
    pub(super) fn new(name: impl AsRef<str>, text: &str) -> Excerpt {
        let Hidden { spans: hidden, quoted } = Hidden::of(text);
        let shown = passwords::replaced(text, &hidden);
        Excerpt { name: passwords::without(name.as_ref()), shown, hidden, quoted }
    }

    /// Converts a span of the text as written to the text as shown. A span inside a password becomes its `***`.
    pub(super) fn shown(&self, span: Range<usize>) -> Range<usize> {
        let (mut start, mut end) = (span.start, span.end);
        let mut longer = 0i64;
        for hidden in &self.hidden {
            let at = moved(hidden.start, longer);
            longer += HIDDEN.len() as i64 - hidden.len() as i64;
            if hidden.start < span.start {
                start = if span.start < hidden.end { at } else { moved(span.start, longer) };
            }
            if hidden.start < span.end {
                end = if span.end < hidden.end { at + HIDDEN.len() } else { moved(span.end, longer) };
            }
        }
        let most = floor(&self.shown, start.saturating_add(MOST_MARKED));
        start..end.min(most).max(start)
    }

    /// The part of a long line that is shown around a span.
    fn part(&self, span: &SourceSpan) -> Range<usize> {
        let text = &self.shown;
        let at = floor(text, span.offset());
        let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
        let from = floor(text, at.saturating_sub(AROUND)).max(line);
        let to = floor(text, (span.offset() + span.len()).saturating_add(AROUND));
        from..to.min(end).max(at)
    }

    /// Removes passwords from a message that may quote the text.
    pub(super) fn without(&self, message: &str) -> String {
        let mut message = message.to_owned();
        for (quoted, shown) in &self.quoted {
            if message.contains(quoted) {
                message = message.replace(quoted, shown);
            }
        }
        passwords::without_in_prose(&message)
    }

    /// The column of a position in the text as written, less its column in the text as shown.
    fn further(&self, shown: usize) -> i64 {
        let line = self.shown[..shown.min(self.shown.len())].rfind('\n').map_or(0, |at| at + 1);
        let mut longer = 0i64;
        let mut further = 0i64;
        for hidden in &self.hidden {
            let at = moved(hidden.start, longer);
            longer += HIDDEN.len() as i64 - hidden.len() as i64;
            if (line..shown).contains(&at) && at + HIDDEN.len() <= shown {
                further += hidden.len() as i64 - HIDDEN.len() as i64;
            }
        }
        further
    }
}

/// The last character boundary at or before byte `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn moved(at: usize, by: i64) -> usize {
    at.saturating_add_signed(by as isize)
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.shown.read_span(span, lines_before, lines_after)?;
        if lines_before > 0 && read.data().split(|byte| *byte == b'\n').any(|line| line.len() > LONGEST_LINE)
        {
            let part = self.part(span);
            let line = self.shown[..part.start].matches('\n').count();
            return Ok(Box::new(MietteSpanContents::new_named(
                self.name.clone(),
                &self.shown.as_bytes()[part.clone()],
                (part.start, part.len()).into(),
                line,
                0,
                1,
            )));
        }
        // An excerpt with lines before the span begins at the first column.
        let further = if lines_before == 0 { self.further(span.offset()) } else { 0 };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            read.data(),
            *read.span(),
            read.line(),
            moved(read.column(), further),
            read.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use miette::{GraphicalReportHandler, GraphicalTheme};

    fn draw(error: &dyn miette::Diagnostic) -> String {
        let mut drawn = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(80);
        handler.render_report(&mut drawn, error).expect("strings take any text");
        drawn
    }

    /// Symptom: an error beyond column 65535 of a line panicked when it was drawn. Cause: columns are format
    /// widths, which have 16 bits. Fix: only a part of a long line is drawn.
    #[test]
    fn only_the_part_of_a_long_line_around_the_fault_is_drawn() {
        let long = "ü".repeat(50_000);
        for text in [
            format!("name = \"x\"\ntitle = \"{long}\" wrong\n"),
            format!("name = \"x\"\nx = {{ a = \"{long}\", b = [1, 2] }}\n"),
            format!("{long} = 3\n"),
            format!("x = {}1\n", " ".repeat(70_000)),
            "[".repeat(70_000),
        ] {
            let Err(error) = Experiment::parse("f.toml", &text, &[]) else { panic!("it is wrong") };
            for problem in error.problems() {
                let drawn = draw(problem);
                assert!(drawn.contains("f.toml:") && drawn.len() < 300_000, "{} bytes", drawn.len());
            }
        }
        let text = format!("name = \"x\"\ntitle = \"{}\" wrong\n", "a".repeat(1000));
        let Err(error) = Experiment::parse("f.toml", &text, &[]) else { panic!("it is wrong") };
        let drawn = draw(&error);
        assert!(drawn.contains("f.toml:2:") && drawn.contains("aaa\" wrong"), "{drawn}");
        assert!(!drawn.contains(&"a".repeat(200)), "{drawn}");
    }

    #[test]
    fn spans_mark_the_same_characters_and_columns_are_those_of_the_file() {
        let text =
            "a = 1\nservers = [\"mariadb://u:longer secret@h/x\", \"mariadb://u:p@h/y\"] # end\nz = 'ü'\n";
        let excerpt = Excerpt::new("f", text);
        assert_eq!(
            excerpt.shown,
            "a = 1\nservers = [\"mariadb://u:***@h/x\", \"mariadb://u:***@h/y\"] # end\nz = 'ü'\n"
        );
        for word in ["a", "servers", "@h/x", "h/y", "] #", "# end", "z", "ü", "= [\"mariadb"] {
            let at = text.find(word).expect(word);
            let shown = excerpt.shown(at..at + word.len());
            assert_eq!(&excerpt.shown[shown.clone()], word);
            let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
            let read = excerpt.read_span(&(shown.start, shown.len()).into(), 0, 0).expect("it is there");
            assert_eq!(read.column(), at - line, "{word}");
        }
        let address = text.find("mariadb").expect("there")..text.find("@h/x").expect("there") + 4;
        assert_eq!(&excerpt.shown[excerpt.shown(address)], "mariadb://u:***@h/x");
        let inside = text.find("secret").expect("there");
        assert_eq!(&excerpt.shown[excerpt.shown(inside..inside + 3)], HIDDEN);
    }
}
