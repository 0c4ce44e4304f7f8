//! Address arithmetic of lines and blocks: the lines of a range, and the runs of blocks in a mask.

/// Sizes, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) line: u64,
    pub(super) block: u64,
}

/// The part of a range within one line, from `begin` to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) line: u64,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// Bits from `first` up to `end`, at most 64.
fn bits(first: u64, end: u64) -> u64 {
    if first >= end { 0 } else { (u64::MAX >> (64 - (end - first))) << first }
}

impl Grid {
    /// The range, line by line.
    pub(super) fn pieces(self, offset: u64, length: u64) -> impl Iterator<Item = Piece> {
        let end = offset + length;
        let lines = if length == 0 { 0..0 } else { offset / self.line..(end - 1) / self.line + 1 };
        lines.map(move |line| {
            let base = line * self.line;
            Piece { line, begin: offset.max(base) - base, end: end.min(base + self.line) - base }
        })
    }

    /// The blocks that a piece overlaps.
    pub(super) fn touched(self, piece: Piece) -> u64 {
        bits(piece.begin / self.block, piece.end.div_ceil(self.block))
    }

    /// The blocks completely within a piece.
    pub(super) fn covered(self, piece: Piece) -> u64 {
        bits(piece.begin.div_ceil(self.block), piece.end / self.block)
    }

    /// The maximal ranges of consecutive blocks in a mask, within the line.
    pub(super) fn runs(self, mask: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut left = mask;
        std::iter::from_fn(move || {
            let first = u64::from(left.trailing_zeros());
            (left != 0).then(|| {
                let end = first + u64::from((left >> first).trailing_ones());
                left &= !bits(first, end);
                (first * self.block, end * self.block)
            })
        })
    }
}

/// Ranges in order. Adjacent ranges are merged.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges(pub(super) Vec<(u64, u64)>);

impl Ranges {
    pub(super) fn push(&mut self, begin: u64, end: u64) {
        match self.0.last_mut() {
            Some(last) if last.1 == begin => last.1 = end,
            _ => self.0.push((begin, end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { line: 64 << 10, block: 4 << 10 };

    #[test]
    fn ranges_are_cut_at_lines_and_cover_blocks() {
        let pieces: Vec<Piece> = GRID.pieces((60 << 10) + 512, 72 << 10).collect();
        let kib = |line, begin: u64, end: u64| Piece { line, begin: (begin << 10) + 512, end };
        let wanted = [
            kib(0, 60, 64 << 10),
            Piece { line: 1, begin: 0, end: 64 << 10 },
            Piece { line: 2, begin: 0, end: (4 << 10) + 512 },
        ];
        assert_eq!(pieces, wanted);
        assert_eq!(
            pieces.iter().map(|it| (GRID.touched(*it), GRID.covered(*it))).collect::<Vec<_>>(),
            [(1 << 15, 0), (0xffff, 0xffff), (3, 1)]
        );
        assert_eq!(GRID.pieces(1 << 20, 0).count(), 0);
    }

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        let runs: Vec<_> = GRID.runs(0b1000_0110_0001).map(|(begin, end)| (begin >> 12, end >> 12)).collect();
        assert_eq!(runs, [(0, 1), (5, 7), (11, 12)]);
        let whole = Grid { line: 64 * 4096, block: 4096 };
        assert_eq!(whole.runs(u64::MAX).collect::<Vec<_>>(), [(0, 64 * 4096)]);
        assert_eq!(whole.runs(0).count(), 0);
    }
}
