//! The promise of whoever ends something for good.

/// Nobody in this process uses it any more, in no call and by no request, and nobody comes: what a call that ends something or gives memory
/// back is handed by its caller.
#[derive(Debug)]
pub struct Unused(());

impl Unused {
    /// # Safety
    /// It is so, of whatever the call that this is handed to ends.
    pub const unsafe fn promised() -> Unused {
        Unused(())
    }
}
