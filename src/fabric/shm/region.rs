//! A rank's region: one sparse memfd with a fixed map. Stub; see the module's owner.
