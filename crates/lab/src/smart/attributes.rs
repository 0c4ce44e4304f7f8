//! SMART attributes of ATA drives, with the meaning and unit of their counts.
//!
//! The names are those of smartmontools. A number alone does not identify a counter, because manufacturers use the
//! same number for different counters. Sources: `published/lifetime.csv`, topic `smart` (smartmontools `drivedb.h` at
//! f1d0da9ce840). Not supported: Samsung's 251 `NAND_Writes`, whose unit is not published.

const MIB_32: f64 = 33_554_432.0;
const GIB: f64 = 1_073_741_824.0;
const GB: f64 = 1e9;

/// An attribute that counts bytes.
pub(super) struct Counter {
    pub(super) id: u64,
    pub(super) name: &'static str,
    /// Bytes per count; `None` if the unit is a logical block.
    pub(super) unit: Option<f64>,
}

const fn counter(id: u64, name: &'static str, unit: f64) -> Counter {
    Counter { id, name, unit: Some(unit) }
}

/// Counters of host writes, in order of preference.
pub(super) const HOST: [Counter; 6] = [
    counter(225, "Host_Writes_32MiB", MIB_32),
    counter(241, "Host_Writes_32MiB", MIB_32),
    counter(241, "Host_Writes_GiB", GIB),
    counter(199, "Host_Writes_GiB", GIB),
    Counter { id: 241, name: "Total_LBAs_Written", unit: None },
    Counter { id: 246, name: "Total_LBAs_Written", unit: None },
];

/// Groups of counters of NAND writes, in order of preference. The counters of a group are added.
pub(super) const NAND: [&[Counter]; 7] = [
    &[counter(243, "NAND_Writes_32MiB", MIB_32)],
    &[counter(249, "NAND_Writes_1GiB", GIB)],
    &[counter(249, "Total_NAND_Prog_Ct_GiB", GIB)],
    &[counter(233, "Total_NAND_Writes_GiB", GIB)],
    &[counter(233, "NAND_GB_Written_TLC", GB), counter(234, "NAND_GB_Written_SLC", GB)],
    &[counter(233, "NAND_GB_Written_TLC", GB)],
    &[counter(249, "TLC_NAND_GB_Writes", GB)],
];

/// Pages programmed for the host, and by the drive itself (Crucial and Micron, 247 and 248). The page size is
/// unknown, so only their ratio is used.
pub(super) const PAGES: [(u64, &[&str]); 2] =
    [(247, &["Host_Program_Page_Count"]), (248, &["FTL_Program_Page_Count", "Bckgnd_Program_Page_Cnt"])];

/// Attributes whose normalised value falls from 100 to 0 as the rated cycles are used.
pub(super) const LEFT: [(u64, &str); 9] = [
    (233, "Media_Wearout_Indicator"),
    (177, "Wear_Leveling_Count"),
    (202, "Percent_Lifetime_Remain"),
    (202, "Percent_Lifetime_Used"),
    (231, "SSD_Life_Left"),
    (169, "Remaining_Lifetime_Perc"),
    (173, "Ave_Block-Erase_Count"),
    (230, "Media_Wearout_Indicator"),
    (232, "Percent_Life_Remaining"),
];
