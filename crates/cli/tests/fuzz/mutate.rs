//! Mutations of valid inputs: tokens and lines are replaced by those of other samples, by numbers at limits and by
//! meaningless words, and bytes are changed. The same random numbers give the same input.
//!
//! `databases` changes stores.

/// Random numbers (SplitMix64, Steele, Lea and Flood 2014).
pub struct Random(u64);

impl Random {
    /// Random numbers for a seed, a kind of input and a case.
    pub fn new(seed: u64, kind: &str, case: u64) -> Random {
        let mut random = Random(seed ^ 0x6c6f_7774_6964_6500);
        kind.bytes().for_each(|byte| random.0 = random.next() ^ u64::from(byte));
        random.0 = random.next() ^ case;
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number from 0 to `end - 1`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % (end.max(1) as u64)) as usize
    }

    /// True with a probability of one in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, of: &'a [&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// Numbers at limits, and words with a meaning in some input; one on each line.
const EDGES: &str = include_str!("edges.txt");

/// Valid inputs of a kind, with their tokens and lines.
#[derive(Default)]
pub struct Pool {
    pub samples: Vec<Vec<u8>>,
    lines: Vec<Vec<u8>>,
    tokens: Vec<Vec<u8>>,
}

/// Length in bytes at which an input is no longer changed.
const LONGEST: usize = 2 << 20;

impl Pool {
    pub fn new(samples: Vec<Vec<u8>>) -> Pool {
        let mut pool = Pool { samples, ..Pool::default() };
        for sample in &pool.samples {
            pool.lines.extend(sample.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
            pool.tokens.extend(sample.split(|byte| !is_of_token(*byte)).map(<[u8]>::to_vec));
        }
        for list in [&mut pool.lines, &mut pool.tokens] {
            list.sort();
            list.dedup();
            list.retain(|it| !it.is_empty() && it.len() < 300);
        }
        pool
    }

    /// A changed sample; one in twenty is unchanged.
    pub fn make(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.samples[random.below(self.samples.len())].clone();
        if random.one_in(20) {
            return bytes;
        }
        let times = 1 + random.below(3) + if random.one_in(8) { random.below(30) } else { 0 };
        for _ in 0..times {
            self.change(&mut bytes, random);
            if bytes.len() > LONGEST {
                break;
            }
        }
        bytes
    }

    fn change(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        match random.below(100) {
            0..40 => {
                let token = token_at(bytes, random.below(bytes.len()));
                let new = match random.below(3) {
                    0 if !self.tokens.is_empty() => self.tokens[random.below(self.tokens.len())].clone(),
                    _ => edge(random).as_bytes().to_vec(),
                };
                bytes.splice(token, new);
            }
            40..55 => {
                // The value on a line, with its quotes.
                let line = line_at(bytes, random.below(bytes.len()));
                let equals = bytes[line.clone()].iter().position(|byte| b"=:,".contains(byte));
                let from = equals.map_or(line.start, |at| line.start + at + 1);
                bytes.splice(from..line.end, edge(random).bytes());
            }
            55..70 => {
                let line = line_at(bytes, random.below(bytes.len()));
                match random.below(4) {
                    0 => drop(bytes.drain(line.start..(line.end + 1).min(bytes.len()))),
                    1 => {
                        let copy = bytes[line.start..(line.end + 1).min(bytes.len())].to_vec();
                        let many = if random.one_in(20) { 2000 } else { 1 + random.below(3) };
                        bytes.splice(
                            line.start..line.start,
                            copy.repeat(many.min(LONGEST / copy.len().max(1))),
                        );
                    }
                    _ if !self.lines.is_empty() => {
                        let mut new = self.lines[random.below(self.lines.len())].clone();
                        new.push(b'\n');
                        bytes.splice(line.start..line.start, new);
                    }
                    _ => {}
                }
            }
            70..85 => {
                let at = random.below(bytes.len());
                match random.below(6) {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at.min(bytes.len()), random.next() as u8),
                    2 => {
                        let garbage: [&[u8]; 6] =
                            [b"\xff\xfe", b"\xc3", b"\0", b"\xf0\x9f\x92", b"\r", b"\xef\xbb\xbf"];
                        bytes.splice(at..at, random.pick(&garbage).to_vec());
                    }
                    3 => {
                        let end = (at + random.below(64)).min(bytes.len());
                        bytes.drain(at..end);
                    }
                    _ if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
                    _ => {}
                }
            }
            85..92 => {
                let other = &self.samples[random.below(self.samples.len())];
                let (from, to) = (random.below(other.len()), random.below(other.len()));
                let at = random.below(bytes.len());
                bytes.splice(at..at, other[from.min(to)..from.max(to)].to_vec());
            }
            92..97 => {
                // Repeated brackets or letters. One time in twelve there may be enough to overflow a stack or a
                // buffer.
                let sizes = if random.one_in(12) { 4 } else { 2 };
                let times = [30, 300, 3000, 100_000][random.below(sizes)];
                let word = random.pick(&[
                    "[", "{", "{\"a\":", "[[", "a.", "a", "9", "\"", "-", "(", "]", "\\", "é", "[a]\n", "0,",
                ]);
                let at = token_at(bytes, random.below(bytes.len())).start;
                let at = if random.one_in(2) { line_at(bytes, at).start } else { at };
                bytes.splice(at..at, word.repeat(times).bytes());
            }
            _ => {
                let (a, b) =
                    (line_at(bytes, random.below(bytes.len())), line_at(bytes, random.below(bytes.len())));
                let (first, second) = if a.start < b.start { (a, b) } else { (b, a) };
                if first.end <= second.start {
                    let (one, two) = (bytes[first.clone()].to_vec(), bytes[second.clone()].to_vec());
                    bytes.splice(second, one);
                    bytes.splice(first, two);
                }
            }
        }
    }
}

/// A value at a limit, a random number, or a number with a unit.
pub fn edge(random: &mut Random) -> String {
    match random.below(8) {
        0 => {
            let unit = random.pick(&[
                "B", "KiB", "MiB", "GiB", "TiB", "PiB", "kB", "GB", "ns", "us", "ms", "s", "min", "h", "d",
                "%",
            ]);
            let number = random.pick(&[
                "0", "1", "2", "3", "7", "64", "100", "255", "1000", "4095", "4096", "65536", "999999",
            ]);
            format!("\"{number}{unit}\"")
        }
        1 => (random.next() >> random.below(64)).to_string(),
        2 => format!("{}", f64::from_bits(random.next())),
        _ => random.pick(&EDGES.lines().collect::<Vec<_>>()).to_owned(),
    }
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.+%".contains(&byte) || byte >= 0x80
}

fn token_at(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = bytes[..at].iter().rposition(|byte| !is_of_token(*byte)).map_or(0, |before| before + 1);
    let end = bytes[at..].iter().position(|byte| !is_of_token(*byte)).map_or(bytes.len(), |after| at + after);
    start..end
}

fn line_at(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1);
    let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |after| at + after);
    start..end
}
