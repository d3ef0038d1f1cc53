//! BLACS over FMPL: the crate that will hold the BLACS names. It has no public item yet; see the guide's list of what is planned.
