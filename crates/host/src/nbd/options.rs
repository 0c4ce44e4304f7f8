//! The data of options: [`ExportChoice`] of INFO and GO, [`ContextQueries`] of the metadata contexts.
//!
//! Any input yields a value or a [`Fault`]. Module `negotiate` reads from the network and replies.

use super::wire::{MAX_STRING, info};

/// Invalid data of an option, in words for the client's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The data does not have the option's format.
    Malformed(&'static str),
    /// A field is longer than the protocol or this server allows.
    TooBig(&'static str),
}

/// The data of INFO and GO: an export and the requested information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportChoice<'a> {
    /// The export's name; empty for the default export.
    pub name: &'a str,
    /// Whether the client requests the name.
    pub wants_name: bool,
    /// Whether the client requests the description.
    pub wants_description: bool,
    /// Whether the client requests the block sizes, and will respect them.
    pub wants_block_size: bool,
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT: an export and queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextQueries<'a> {
    /// The export's name; empty for the default export.
    pub export: &'a str,
    /// The queries, each with a namespace and a colon.
    pub queries: Vec<&'a str>,
}

impl<'a> ExportChoice<'a> {
    /// Reads the data.
    pub fn read(data: &'a [u8]) -> Result<ExportChoice<'a>, Fault> {
        let mut fields = Fields(data);
        let name = fields.counted_string()?;
        let requests = fields.u16()?;
        let mut choice =
            ExportChoice { name, wants_name: false, wants_description: false, wants_block_size: false };
        for _ in 0..requests {
            match fields.u16()? {
                info::NAME => choice.wants_name = true,
                info::DESCRIPTION => choice.wants_description = true,
                info::BLOCK_SIZE => choice.wants_block_size = true,
                _ => {} // EXPORT is always sent; the protocol ignores unknown types
            }
        }
        fields.end()?;
        Ok(choice)
    }
}

impl<'a> ContextQueries<'a> {
    /// Reads the data.
    pub fn read(data: &'a [u8]) -> Result<ContextQueries<'a>, Fault> {
        let mut fields = Fields(data);
        let export = fields.counted_string()?;
        let count = fields.u32()?;
        let mut queries = Vec::new();
        for _ in 0..count {
            let query = fields.counted_string()?;
            if !query.contains(':') {
                return Err(Fault::Malformed("a query has no namespace: write base:allocation"));
            }
            queries.push(query);
        }
        fields.end()?;
        Ok(ContextQueries { export, queries })
    }
}

/// The unread data.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (bytes, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(Fault::Malformed("a field reaches past the end of the option"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    /// A string with its length in front.
    fn counted_string(&mut self) -> Result<&'a str, Fault> {
        let length = self.u32()?;
        text(self.bytes(length as usize)?)
    }

    fn end(&self) -> Result<(), Fault> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Fault::Malformed("bytes are left over after the last field"))
        }
    }
}

/// Reads a string of the protocol: UTF-8 without NUL, at most [`MAX_STRING`] bytes.
pub fn text(bytes: &[u8]) -> Result<&str, Fault> {
    if bytes.len() > MAX_STRING {
        return Err(Fault::TooBig("a string has more than 4096 bytes"));
    }
    if bytes.contains(&0) {
        return Err(Fault::Malformed("a string has a NUL in it"));
    }
    std::str::from_utf8(bytes).map_err(|_| Fault::Malformed("a string is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Vec<u8> {
        let mut bytes = u32::try_from(text.len()).expect("short").to_be_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    }

    #[test]
    fn every_prefix_of_a_choice_is_malformed() {
        let mut data = string("disk");
        data.extend([0, 3, 0, 1, 0, 3, 0, 99]);
        let choice = ExportChoice::read(&data).expect("whole");
        assert_eq!(
            choice,
            ExportChoice { name: "disk", wants_name: true, wants_description: false, wants_block_size: true }
        );
        for length in 0..data.len() {
            assert!(
                matches!(ExportChoice::read(&data[..length]), Err(Fault::Malformed(_))),
                "{length} bytes"
            );
        }
        data.push(0);
        assert!(matches!(ExportChoice::read(&data), Err(Fault::Malformed(_))));
    }

    #[test]
    fn every_prefix_of_queries_is_malformed() {
        let data = [string("disk"), vec![0, 0, 0, 2], string("base:allocation"), string("x-other:")].concat();
        let queries = ContextQueries::read(&data).expect("whole");
        assert_eq!(queries, ContextQueries { export: "disk", queries: vec!["base:allocation", "x-other:"] });
        for length in 0..data.len() {
            assert!(
                matches!(ContextQueries::read(&data[..length]), Err(Fault::Malformed(_))),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn strings_are_short_text_without_nul() {
        assert_eq!(text("ä".repeat(2048).as_bytes()), Ok(&*"ä".repeat(2048)));
        assert!(matches!(text(&[b'x'; 4097]), Err(Fault::TooBig(_))));
        assert!(matches!(text(b"a\0b"), Err(Fault::Malformed(_))));
        assert!(matches!(text(b"\xff"), Err(Fault::Malformed(_))));
        let far = [&u32::MAX.to_be_bytes()[..], b"disk"].concat();
        assert!(matches!(ExportChoice::read(&far), Err(Fault::Malformed(_))));
    }
}
