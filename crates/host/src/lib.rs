//! Everything Linux.
