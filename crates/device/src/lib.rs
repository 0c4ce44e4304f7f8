//! Models of storage devices in virtual time.
