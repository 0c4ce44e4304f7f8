//! The native module of the Python package `lowtide`: plans, campaigns, tables and devices with a minimal interface.
//!
//! ```text
//!   lowtide (Python: names, defaults, DataFrames) ──► lowtide._native (this) ──► lab ──► device, host, core
//! ```
//!
//! The GIL is released during measurements. The Python package adds defaults, `repr`s and DataFrames.

mod campaign;
mod catalogue;
mod device;
mod errors;
mod parts;
mod plan;
mod progress;
mod run;
mod table;

use lowtide_host::memory::HugePages;
use pyo3::pymodule;

/// Huge pages, because simulated drives read hundreds of megabytes of tables at random.
#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

/// Native parts of the package. `lowtide` wraps them in a convenient interface.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::campaign::{Campaign, campaigns, load, merge, write_file};
    #[pymodule_export]
    use crate::catalogue::{devices, experiments, published};
    #[pymodule_export]
    use crate::device::Device;
    #[pymodule_export]
    use crate::parts::{Parts, begin, snapshot};
    #[pymodule_export]
    use crate::plan::{Plan, plan, target_of};
    #[pymodule_export]
    use crate::run::{Outcome, run};
    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
