//! Device files: reading the description of a simulated device.
//!
//! Leaves out the model; see crate `lowtide-device`.

use lowtide_device::DeviceSpec;

/// Reads a device file.
///
/// # Errors
/// What TOML says, with line and column.
pub fn parse(text: &str) -> Result<DeviceSpec, toml::de::Error> {
    toml::from_str(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_device_that_comes_with_the_program_is_valid_at_every_scale() {
        for entry in crate::catalogue::devices() {
            let spec = super::parse(entry.text).unwrap_or_else(|error| panic!("{}: {error}", entry.path));
            assert_eq!(spec.name, entry.name);
            for scale in [1, 8, 16, 64] {
                spec.scaled(scale)
                    .validate()
                    .unwrap_or_else(|error| panic!("{} 1/{scale}: {error}", entry.path));
            }
        }
    }
}
