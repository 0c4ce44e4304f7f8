//! A table as CSV: stable keys in the first line, numbers unrounded.

use crate::table::Table;
use serde_json::Value as Json;

/// The table as CSV, with a header line.
pub(crate) fn text(table: &Table) -> String {
    let keys = table.record_keys();
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut write = |record: Vec<String>| writer.write_record(record).expect("writing to a Vec cannot fail");
    write(keys.clone());
    for record in table.records() {
        write(keys.iter().map(|key| record.get(key).map_or_else(String::new, plain)).collect());
    }
    let bytes = writer.into_inner().expect("writing to a Vec cannot fail");
    String::from_utf8(bytes).expect("only UTF-8 was written")
}

/// A JSON scalar without quotes.
fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
