//! Damaged indexes on a real PostgreSQL server.

use super::{loaded, quick};

/// Symptom: a damaged index was never reported. Cause: the check looked for indexes in schema `public`, and the tables
/// are in schema `lowtide`. Fix: the check looks there, and a database without indexes counts as damaged.
#[test]
fn an_index_that_does_not_match_its_table_is_damage() {
    let Some((_directory, instance, _)) = loaded(&quick()) else { return };
    let database = instance.database();
    assert_eq!(database.damage().expect("indexes can be checked"), Vec::<String>::new());
    // An index over a function that then changes has the wrong entries.
    for (sign, after) in [("", "CREATE INDEX changed ON item (key_of(i_id))"), ("-", "SELECT 1")] {
        let function = "CREATE OR REPLACE FUNCTION key_of(n integer) RETURNS integer IMMUTABLE LANGUAGE sql";
        database.execute(&format!("{function} AS 'SELECT {sign}n'")).expect("the function is made");
        database.execute(after).expect("runs");
    }
    let damage = database.damage().expect("indexes can be checked");
    assert!(damage.len() == 1 && damage[0].contains("changed"), "{damage:?}");
}
