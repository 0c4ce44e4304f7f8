//! Readings of every kind of drive in `published/lifetime.csv`, written by hand in the formats of smartctl and
//! nvme-cli, with expected values computed by hand.

use super::*;

const INTEL_520: &str = include_str!("../samples/intel-520.json");
const INTEL_320: &str = include_str!("../samples/intel-320.json");
const S3610: &str = include_str!("../samples/intel-s3610.json");
const CRUCIAL: &str = include_str!("../samples/crucial-mx500.json");
const NVME: &str = include_str!("../samples/nvme-smartctl.json");
const SMART_LOG: &str = include_str!("../samples/nvme-smart-log.json");
const OCP: &str = include_str!("../samples/nvme-ocp.json");
const INTEL_NVME: &str = include_str!("../samples/nvme-intel.json");

fn reading(text: &str) -> Reading {
    Reading::parse(text).expect("it is a reading")
}

fn life(now: &Reading, since: Option<&Reading>, rate: Option<&str>) -> Life {
    let rate = rate.map(|rate| rate.parse::<WriteRate>().expect("a rate"));
    Life::new(now, since, rate, None).expect("they go together")
}

#[test]
fn intel_counts_nand_in_gib() {
    let now = reading(INTEL_520);
    assert_eq!(now.model.as_deref(), Some("INTEL SSDSC2CW240A3"));
    // 320,000 × 32 MiB are 10,000 GiB. With 25,000 GiB of NAND, write amplification is 2.5 ("WA = F9 × 32 / E1").
    assert_eq!(now.host_bytes, Some(10_000.0 * 1_073_741_824.0));
    let period = &life(&now, None, None).periods[0];
    assert_eq!((period.write_amplification, period.hours), (Some(2.5), Some(10_000.0)));
    assert_eq!(now.used_percent, Some(10.0));
    assert_eq!(now.sources, ["225 Host_Writes_32MiB", "249 NAND_Writes_1GiB", "233 Media_Wearout_Indicator"]);
}

#[test]
fn intel_320_without_nand_counter_uses_its_wear() {
    let now = reading(INTEL_320);
    // The data sheet's example: 30,000 units are 1,007 GB.
    assert_eq!((now.host_bytes.expect("counted") / 1e9).round(), 1007.0);
    assert_eq!((now.media, now.used_percent), (None, Some(2.0)));
    let life = life(&now, None, None);
    // One to three percent in one year: 97/3 to 99 years at the same pace.
    let years = life.years_left.expect("known");
    assert!((years.low - 97.0 / 3.0).abs() < 1e-9 && (years.high - 99.0).abs() < 1e-9, "{years:?}");
    assert_eq!(life.basis.as_deref(), Some("the drive reports 2 % of its life used"));
}

#[test]
fn intel_s3610_counts_nand_in_32_mib() {
    let now = reading(S3610);
    assert_eq!(life(&now, None, None).periods[0].write_amplification, Some(1.75));
    assert_eq!(now.nand_bytes(), Some(1_750_000.0 * 33_554_432.0));
}

#[test]
fn crucial_counts_pages() {
    let now = reading(CRUCIAL);
    // 700 million pages for the host and 2,100 million others: a write amplification of 4. 40 billion blocks of 512
    // bytes: 20.48 TB.
    assert_eq!(now.host_bytes, Some(20.48e12));
    assert_eq!(now.nand_bytes(), Some(4.0 * 20.48e12));
    assert_eq!(now.used_percent, Some(7.0));
}

#[test]
fn nvme_by_smartctl_has_wear_and_no_nand_counter() {
    let now = reading(NVME);
    assert_eq!((now.host_bytes, now.used_percent, now.media), (Some(256e12), Some(20.0), None));
    let life = life(&now, None, None);
    // One year of 8,760 h: (100 − 21)/21 to (100 − 19)/19 years.
    let years = life.years_left.expect("known");
    assert!((years.low - 79.0 / 21.0).abs() < 1e-9 && (years.high - 81.0 / 19.0).abs() < 1e-9, "{years:?}");
    // At 0.75 drive writes a day of 1.0002 TB: 256 TB × 79/21 / 0.750 TB / 365.
    let slower = self::life(&now, None, Some("0.75DWPD")).years_left.expect("known");
    assert!((slower.low - 256e12 * 79.0 / 21.0 / (0.75 * 1_000_204_886_016.0) / 365.0).abs() < 1e-9);
}

#[test]
fn nvme_cli_with_the_ocp_log() {
    for now in [reading(SMART_LOG).with(reading(OCP)), reading(OCP).with(reading(SMART_LOG))] {
        // 250 million × 512,000 bytes are 128 TB; 320 TB of NAND.
        assert_eq!((now.host_bytes, now.nand_bytes()), (Some(128e12), Some(320e12)));
        assert_eq!((now.used_percent, now.power_on_hours), (Some(3.0), Some(4380.0)));
        assert_eq!(life(&now, None, None).periods[0].write_amplification, Some(2.5));
    }
}

#[test]
fn nvme_cli_with_a_vendor_log() {
    let now = reading(SMART_LOG).with(reading(INTEL_NVME));
    assert_eq!(now.nand_bytes(), Some(128e12 * 1.5));
}

#[test]
fn two_readings_give_the_rate_between_them() {
    let then = reading(INTEL_520);
    let now = Reading {
        power_on_hours: Some(10_240.0),
        host_bytes: then.host_bytes.map(|bytes| bytes + 1e12),
        media: then.media.map(|media| Media { host: media.host + 1e12, nand: media.nand + 5e12 }),
        ..then.clone()
    };
    let life = life(&now, Some(&then), None);
    let period = &life.periods[1];
    // 1 TB in ten days, five times as much into the NAND.
    assert!((life.bytes_per_day.expect("known") - 1e11).abs() < 1e3, "{life:?}");
    assert!((period.write_amplification.expect("known") - 5.0).abs() < 1e-6, "{period:?}");
    // A tenth of the life was used at the amplification of the whole life; the other nine tenths will be used at
    // five.
    let whole = life.periods[0].write_amplification.expect("known");
    let left = life.host_bytes_left.expect("known");
    let host = now.host_bytes.expect("known");
    assert!((left.low / (host * 89.0 / 11.0 * whole / 5.0) - 1.0).abs() < 1e-9, "{left:?}");
    let back = Life::new(&then, Some(&now), None, None).expect_err("backwards");
    assert_eq!(back, LifeError::Decreased { what: "the power-on time" });
    let other = Life::new(&now, Some(&reading(CRUCIAL)), None, None).expect_err("another drive");
    assert!(other.to_string().contains("different drives"), "{other}");
}

#[test]
fn rated_cycles_override_the_drives_used_share() {
    let now = reading(S3610);
    let endurance =
        Endurance { raw: Bytes::new(1_000_000_000_000), cycles: "5000..10000".parse().expect("cycles") };
    let life =
        Life::new(&now, None, Some(WriteRate::BytesPerDay(1e12)), Some(endurance)).expect("one reading");
    let nand = 1_750_000.0 * 33_554_432.0;
    let years = life.years_left.expect("known");
    assert!((years.low - (5e15 - nand) / 1.75 / 1e12 / 365.0).abs() < 1e-9, "{years:?}");
    assert!((years.high - (10e15 - nand) / 1.75 / 1e12 / 365.0).abs() < 1e-9, "{years:?}");
}

#[test]
fn a_new_drive_has_no_upper_bound() {
    let now = Reading { used_percent: Some(0.0), ..reading(NVME) };
    let years = life(&now, None, None).years_left.expect("known");
    assert!((years.low - 99.0).abs() < 1e-9 && years.high.is_infinite(), "{years:?}");
    let past = Reading { used_percent: Some(130.0), ..reading(NVME) };
    assert_eq!(life(&past, None, None).years_left.map(|years| (years.low, years.high)), Some((0.0, 0.0)));
}

#[test]
fn attributes_unknown_to_smartctl_are_ignored() {
    let unknown = INTEL_520.replace("NAND_Writes_1GiB", "Unknown_Attribute");
    assert_eq!(reading(&unknown).media, None);
    let samsung = INTEL_520
        .replace("\"id\": 249, \"name\": \"NAND_Writes_1GiB\"", "\"id\": 251, \"name\": \"NAND_Writes\"");
    let samsung = reading(&samsung);
    assert!(samsung.media.is_none() && samsung.notes[0].contains("251 NAND_Writes"), "{samsung:?}");
}

#[test]
fn newer_fields_of_smartctl_are_parsed() {
    let text = r#"{ "model_name": "X", "logical_block_size": 4096, "endurance_used": { "current_percent": 4 },
        "ata_device_statistics": { "pages": [ { "number": 1, "table": [
            { "offset": 24, "name": "Logical Sectors Written", "size": 6, "value": 1000 } ] } ] } }"#;
    let now = reading(text);
    assert_eq!((now.host_bytes, now.used_percent), (Some(4_096_000.0), Some(4.0)));
}

#[test]
fn input_without_counters_is_rejected() {
    assert!(Reading::parse("ID# ATTRIBUTE_NAME").expect_err("text").to_string().contains("not JSON"));
    for text in ["{}", "[]", "3", "null", "{\"a\":{\"b\":1}}"] {
        assert!(Reading::parse(text).expect_err(text).to_string().contains("no known counters"), "{text}");
    }
    let asleep = r#"{"smartctl":{"exit_status":2,"messages":[{"string":"Smartctl open device: /dev/sda failed: Permission denied","severity":"error"}]}}"#;
    assert!(Reading::parse(asleep).expect_err("nothing").to_string().contains("Permission denied"));
}
