//! The verbs of a live drive. Their arguments are in `live` and `attach`.

use super::live::{
    CutArguments, FailArguments, RecordArguments, ServeArguments, ServerArguments, StatArguments,
};
use super::{AttachArguments, DetachArguments};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum DriveVerb {
    /// Serve simulated drives to NBD clients
    Serve(ServeArguments),
    /// Attach a simulated drive as a block device of this machine
    Attach(AttachArguments),
    /// Detach an attached drive
    Detach(DetachArguments),
    /// Show the statistics of a drive
    Stat(StatArguments),
    /// Record the requests to a drive as a trace for replay
    Record(RecordArguments),
    /// Cut the power of a drive
    Powercut(CutArguments),
    /// Restore power
    PowerOn(ServerArguments),
    /// Stop the drive's clock
    Pause(ServerArguments),
    /// Restart the drive's clock
    Resume(ServerArguments),
    /// Erase a drive completely
    SecureErase(ServerArguments),
    /// Inject faults: errors, slow requests, end of life
    Fail(FailArguments),
}
