//! Prices of devices, from a list of the user.
//!
//! A list is CSV (`name,usd` per line, with an optional heading) or TOML (`name = usd`). Prices are in US dollars;
//! their date is the user's choice.

use lowtide_core::suggest::nearest;
use std::collections::BTreeMap;

/// Prices in US dollars by device name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prices(BTreeMap<String, f64>);

/// An error in a list of prices.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// The list is not TOML; the message has line and column.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// The list is not CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// A line that is not a name and a price.
    #[error("{place}: `{text}` is not a price: write dollars above 0, such as `390` or `6308.99`")]
    Price {
        /// The line or key.
        place: String,
        /// The text in place of a price.
        text: String,
    },
    /// A line without two columns.
    #[error("line {line} has {found} columns: write a name and a price, `intel-320-160gb,299`")]
    Columns {
        /// The line.
        line: u64,
        /// The number of columns.
        found: usize,
    },
    /// The list is empty.
    #[error("the list names no device")]
    Empty,
}

impl Prices {
    /// Parses a list: TOML if `path` ends in `.toml`, else CSV.
    ///
    /// # Errors
    /// [`PricesError`] with the invalid line.
    pub fn parse(path: &str, text: &str) -> Result<Prices, PricesError> {
        let prices = if path.ends_with(".toml") { from_toml(text) } else { from_csv(text) }?;
        if prices.is_empty() { Err(PricesError::Empty) } else { Ok(Prices(prices)) }
    }

    /// The price of a device.
    pub fn of(&self, device: &str) -> Option<f64> {
        self.0.get(device).copied()
    }

    /// The name in the list nearest to `device`.
    pub fn nearest(&self, device: &str) -> Option<&str> {
        nearest(device, self.0.keys().map(String::as_str))
    }
}

fn price(place: String, text: &str) -> Result<f64, PricesError> {
    let number = text.trim().trim_start_matches('$').parse::<f64>().ok();
    let price = number.filter(|price| price.is_finite() && *price > 0.0);
    price.ok_or_else(|| PricesError::Price { place, text: text.to_owned() })
}

fn from_toml(text: &str) -> Result<BTreeMap<String, f64>, PricesError> {
    let table: toml::Table = toml::from_str(text)?;
    let one = |(name, value): (String, toml::Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let price = price(format!("`{name}`"), &text)?;
        Ok((name, price))
    };
    table.into_iter().map(one).collect()
}

fn from_csv(text: &str) -> Result<BTreeMap<String, f64>, PricesError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut prices = BTreeMap::new();
    for (at, record) in reader.records().enumerate() {
        let record = record?;
        let line = record.position().map_or(at as u64 + 1, csv::Position::line);
        let (Some(name), Some(usd), 2) = (record.get(0), record.get(1), record.len()) else {
            return Err(PricesError::Columns { line, found: record.len() });
        };
        if at == 0 && (name, usd) == ("name", "usd") {
            continue;
        }
        prices.insert(name.to_owned(), price(format!("line {line}"), usd)?);
    }
    Ok(prices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_parsed() {
        let csv = "# Percona, 2010-06-15\nname,usd\nintel-x25-e-32gb, 390\nfusionio-160gb-slc,$6308.99\n";
        let toml = "intel-x25-e-32gb = 390\n\"fusionio-160gb-slc\" = 6308.99\n";
        let prices = Prices::parse("prices.csv", csv).expect("CSV");
        assert_eq!(prices, Prices::parse("prices.toml", toml).expect("TOML"));
        assert_eq!((prices.of("intel-x25-e-32gb"), prices.of("other")), (Some(390.0), None));
        assert_eq!(prices.nearest("intel-x25-32gb"), Some("intel-x25-e-32gb"));
    }

    #[test]
    fn errors_name_the_line_or_key() {
        let error = |path: &str, text: &str| Prices::parse(path, text).expect_err(text).to_string();
        assert!(error("p.csv", "a,1\nb,cheap\n").contains("line 2: `cheap` is not a price"));
        assert!(error("p.csv", "a,1\nb\n").contains("line 2 has 1 columns"));
        assert!(error("p.csv", "a,-3\n").contains("`-3` is not a price"));
        assert!(error("p.toml", "a = [1]\n").contains("`a`: `[1]` is not a price"));
        assert!(error("p.toml", "a = 1\na = 2\n").contains("duplicate key"));
        assert!(error("p.csv", "").contains("names no device"));
    }
}
