//! A text that errors point into, as it is shown: without the passwords in it.
//!
//! `***` stands for a password whatever its length, so the rest of its line moves. Spans and columns are
//! those of the text as written: spans are moved where the excerpt is drawn, and the column in the message is
//! where an editor finds the fault. Not here: where passwords stand (`passwords`).

use lowtide_files::passwords::{self, Hidden};
use lowtide_oltp::HIDDEN;
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::fmt;
use std::ops::Range;

/// Lines up to this many bytes are shown whole; of a longer line, a part around the fault is shown. Columns
/// beyond 65535 cannot be drawn.
const LONGEST_LINE: usize = 500;
/// Bytes shown on both sides of the mark in a longer line, and most bytes that are marked.
const AROUND: usize = 60;
const MOST_MARKED: usize = 100;

/// A named text.
#[derive(Clone)]
pub(super) struct Excerpt {
    name: String,
    shown: String,
    /// Where passwords stood in the text as written.
    hidden: Vec<Range<usize>>,
    /// Addresses that messages may quote, and how they are shown.
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

    /// A span of the text as written, in the text as shown; one inside of a password becomes all of its
    /// `***`.
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
        let most = self.shown.floor(start.saturating_add(MOST_MARKED));
        start..end.min(most).max(start)
    }

    /// The part that is shown around a span in a line that is too long.
    fn part(&self, span: &SourceSpan) -> Range<usize> {
        let text = &self.shown;
        let at = text.floor(span.offset());
        let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
        let from = text.floor(at.saturating_sub(AROUND)).max(line);
        from..text.floor((span.offset() + span.len()).saturating_add(AROUND)).min(end).max(at)
    }

    /// A message about the text, without the passwords that it quotes.
    pub(super) fn without(&self, message: &str) -> String {
        let mut message = message.to_owned();
        for (quoted, shown) in &self.quoted {
            if message.contains(quoted) {
                message = message.replace(quoted, shown);
            }
        }
        passwords::without_in_prose(&message)
    }

    /// How many columns further right a place lies in the text as written than in the text as shown.
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

/// The last character boundary at or before a byte.
trait Floor {
    fn floor(&self, at: usize) -> usize;
}

impl Floor for str {
    fn floor(&self, at: usize) -> usize {
        let at = at.min(self.len());
        (0..=at).rev().find(|at| self.is_char_boundary(*at)).unwrap_or(0)
    }
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
        // If lines come before it, it begins at the first column.
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

    /// Symptom: an error beyond column 65535 of a line panicked when it was drawn. Cause: columns are format
    /// widths, which have 16 bits. Fix: of a long line, only a part is drawn.
    #[test]
    fn of_a_long_line_the_part_around_the_fault_is_drawn() {
        let long = "ü".repeat(50_000);
        for text in [
            format!("name = \"x\"\ntitle = \"{long}\" wrong\n"),
            format!("name = \"x\"\nx = {{ a = \"{long}\", b = [1, 2] }}\n"),
            format!("{long} = 3\n"),
            format!("x = {}1\n", " ".repeat(70_000)),
            "[".repeat(70_000),
        ] {
            let Err(error) = Experiment::parse("f.toml", &text, &[]) else { panic!("it is wrong") };
            let handler =
                GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(80);
            for problem in error.problems() {
                let mut drawn = String::new();
                handler.render_report(&mut drawn, problem).expect("it can be drawn");
                assert!(drawn.contains("f.toml:") && drawn.len() < 300_000, "{} bytes", drawn.len());
            }
        }
        let text = format!("name = \"x\"\ntitle = \"{}\" wrong\n", "a".repeat(1000));
        let Err(error) = Experiment::parse("f.toml", &text, &[]) else { panic!("it is wrong") };
        let mut drawn = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(80);
        handler.render_report(&mut drawn, &error).expect("it can be drawn");
        assert!(drawn.contains("f.toml:2:") && drawn.contains("aaa\" wrong"), "{drawn}");
        assert!(!drawn.contains(&"a".repeat(200)), "{drawn}");
    }

    /// Every span of the text as written marks the same characters in what is shown, and its column stays.
    #[test]
    fn spans_mark_what_they_marked_and_columns_stay_those_of_the_file() {
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
        let whole = text.find("mariadb").expect("there")..text.find("@h/x").expect("there") + 4;
        assert_eq!(&excerpt.shown[excerpt.shown(whole)], "mariadb://u:***@h/x");
        let inside = text.find("secret").expect("there");
        assert_eq!(&excerpt.shown[excerpt.shown(inside..inside + 3)], HIDDEN);
    }
}
