//! Layout of the live view on at least 80 columns and 24 lines.
//!
//! ```text
//! title, cells done, remaining time
//! the running cell, and its preliminary verdict
//! throughput                      | latency
//! cells that ended
//! ```
//!
//! The view depends on [`State`] only. If several cells run at the same time, the first cell is drawn and the other
//! cells are counted.

use super::SMALLEST;
use super::state::{Running, State, words};
use lowtide_lab::campaign::Stage;
use lowtide_record::Quantity;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Borders, Chart, Dataset, Gauge, GraphType, Paragraph, Wrap};
use std::time::Duration;

/// Draws the view.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("lowtide is running; this terminal is smaller than {}×{}", SMALLEST.0, SMALLEST.1);
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let [head, gauge, cell, charts, ended, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Min(9),
        Constraint::Length(8),
        Constraint::Length(1),
    ])
    .areas(area);
    let bold = Style::default().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::from(Span::styled(plain(&format!("lowtide: {}", state.title)), bold)), head);
    frame.render_widget(overall(state), gauge);
    frame.render_widget(running(state), cell);
    if let Some(first) = state.running.first() {
        let [left, right] = Layout::horizontal([Constraint::Ratio(1, 2); 2]).areas(charts);
        let level = format!("{}, {}", first.quantity.name(), first.quantity.unit());
        let latency = match first.quantity {
            Quantity::Throughput => "latency p99, ms",
            Quantity::NewOrders => "latency of New-Order p99, ms",
        };
        line(frame, left, &level, &first.levels, Color::Cyan);
        line(frame, right, latency, &first.latency, Color::Yellow);
    }
    frame.render_widget(list(state, ended), ended);
    let note = state.notes.last().map(|note| format!("; {}", plain(note))).unwrap_or_default();
    let text = format!("Ctrl-C stops cleanly{note}");
    frame.render_widget(Line::from(text).style(Style::default().add_modifier(Modifier::DIM)), foot);
}

/// Draws the progress of the campaign, and the remaining time.
fn overall(state: &State) -> Gauge<'static> {
    let (share, elapsed) = (state.share(), state.began.elapsed());
    let left = match share {
        share if share > 0.005 => span(elapsed.mul_f64((1.0 - share) / share)),
        _ => "–".to_owned(),
    };
    let label = format!(
        "{} of {} cells, {:.0} %, {} elapsed, about {left} left",
        state.ended.len(),
        state.cells,
        share * 100.0,
        span(elapsed)
    );
    Gauge::default().ratio(share).label(label).gauge_style(Style::default().fg(Color::Blue).bg(Color::Black))
}

/// The first running cell.
fn running(state: &State) -> Paragraph<'static> {
    let Some(first) = state.running.first() else {
        return Paragraph::new("between two cells");
    };
    let doing = match first.stage {
        Stage::Prepare => format!("preparing, {:.0} %", first.share * 100.0),
        Stage::Replay => format!("repeating to restore the drive's history, {:.0} %", first.share * 100.0),
        Stage::Measure => {
            let rate = first.levels.last().map(|(_, rate)| format!(", {}", first.quantity.running(*rate)));
            format!("measuring, {:.0} %{}", first.share * 100.0, rate.unwrap_or_default())
        }
    };
    let others = match state.running.len() - 1 {
        0 => String::new(),
        others => format!("  (and {others} more)"),
    };
    Paragraph::new(vec![
        Line::from(plain(&format!("{}: {doing}{others}", first.label))),
        Line::from(plain(&format!("so far: {}", so_far(first)))),
    ])
    .wrap(Wrap { trim: true })
}

fn so_far(running: &Running) -> String {
    let words = |verdict| words(verdict, running.quantity);
    running.verdict.as_ref().map_or_else(|| "too early to tell".to_owned(), words)
}

/// A line chart over time in seconds; both axes start at zero.
fn line(frame: &mut Frame<'_>, area: Rect, title: &str, points: &[(f64, f64)], colour: Color) {
    let block = Block::default().borders(Borders::ALL).title(title);
    if points.is_empty() {
        frame.render_widget(block, area);
        return;
    }
    let end = points.last().map_or(1.0, |(x, _)| x.max(1e-3));
    let top = points.iter().map(|(_, y)| *y).fold(0.0, f64::max).max(1e-3) * 1.05;
    let x = Axis::default().bounds([0.0, end]).labels(["0".to_owned(), span(Duration::from_secs_f64(end))]);
    let y = Axis::default().bounds([0.0, top]).labels(["0".to_owned(), number(top)]);
    let kind = if points.len() > 1 { GraphType::Line } else { GraphType::Scatter };
    let data = Dataset::default().marker(Marker::Braille).graph_type(kind).data(points);
    let chart = Chart::new(vec![data.style(Style::default().fg(colour))]).block(block).x_axis(x).y_axis(y);
    frame.render_widget(chart, area);
}

/// The last cells that ended.
fn list(state: &State, area: Rect) -> Paragraph<'static> {
    let room = usize::from(area.height.saturating_sub(1));
    let skip = state.ended.len().saturating_sub(room);
    let width = usize::from(area.width);
    let lines = state.ended[skip..].iter().map(|(label, answer)| {
        let text: String = plain(&format!("{label}: {answer}")).chars().take(width).collect();
        Line::from(text)
    });
    let lines: Vec<Line<'static>> = lines.collect();
    Paragraph::new(lines).block(Block::default().borders(Borders::TOP).title("ended"))
}

/// Removes control characters: names from files must not control the terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// `42 s`, `31 min`, `2.5 h`.
fn span(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_lab::experiment::Experiment;
    use lowtide_lab::plan::{Plan, PlannedCell};
    use lowtide_record::analysis::{Estimate, Verdict};
    use lowtide_record::{Percentiles, Row};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn cells() -> Vec<PlannedCell> {
        let text = "name = \"t\"\ntarget.device = \"intel-320-160gb\"\n[workload]\npattern = \"random-write\"\n\
                    block = \"16KiB\"\nduration = \"1h\"\n[sweep]\nfile_size = [\"10GiB\", \"20GiB\", \"40GiB\"]\n";
        Plan::new(Experiment::parse("t.toml", text, &[]).expect("valid"), Seed::new(1), 1)
            .expect("plans")
            .cells
    }

    fn row(second: u64, mib: u64) -> Row {
        Row {
            start_ns: second * 1_000_000_000,
            end_ns: (second + 1) * 1_000_000_000,
            writes: mib,
            write_bytes: mib << 20,
            write: Percentiles { p99_ns: 3_000_000, ..Percentiles::default() },
            ..Row::default()
        }
    }

    fn screen(state: &State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
        terminal.draw(|frame| draw(frame, state)).expect("it draws");
        let buffer = terminal.backend().buffer().clone();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_view_fits_eighty_by_twenty_four() {
        let cells = cells();
        let mut state = State::new("t, device:intel-320-160gb", 3);
        let estimate = Estimate { mean: 40.0, half_width: 0.4, from_ns: 0, to_ns: 1, batches: 20 };
        state.cell(&cells[0], Stage::Measure, 0.5, Some(&row(0, 40)));
        state.verdict(&cells[0], &Verdict::Steady(estimate));
        state.ended(&cells[0], None);
        state.ended(&cells[1], Some("the drive\u{1b}[2J left"));
        for second in 0..2000 {
            let row = row(second, 50 + second % 9);
            state.cell(&cells[2], Stage::Measure, second as f64 / 4000.0, Some(&row));
        }
        assert!(state.running[0].levels.len() <= 400, "a long line is thinned out");
        let reason = "still in the honeymoon".to_owned();
        state.verdict(&cells[2], &Verdict::NoSteadyState { reason });
        let text = screen(&state, 80, 24).join("\n");
        for wanted in [
            "lowtide: t, device:intel-320-160gb",
            "2 of 3 cells, 85 %",
            "file_size 40GiB: measuring, 50 %, 5",
            "so far: no steady state: still in the honeymoon",
            "throughput, MiB/s",
            "latency p99, ms",
            "file_size 10GiB: 40.0 ± 0.4 MiB/s",
            "file_size 20GiB: failed: the drive [2J left",
            "Ctrl-C stops cleanly",
        ] {
            assert!(text.contains(wanted), "`{wanted}` is not in:\n{text}");
        }
        assert!(text.contains(['⠒', '⠉', '⣀', '⠤']), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_small_terminal_gets_a_message_and_a_large_one_is_filled() {
        let state = State::new("t", 1);
        assert!(screen(&state, 60, 10).join("").contains("smaller than 80×24"));
        assert!(screen(&state, 200, 60)[59].starts_with("Ctrl-C"));
    }
}
