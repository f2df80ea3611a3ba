//! Arrays of identical jobs, and estimates above the runtime.

use super::Feitelson96;
use crate::generate::arrivals::whole_seconds;
use crate::generate::random::Stream;

impl Feitelson96 {
    /// Draws the length of a run that is an array. `None`: it is not.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to array_max")]
    pub(super) fn array_length(&self, stream: &mut Stream) -> Option<u32> {
        if self.array_chance <= 0.0 || stream.uniform() >= self.array_chance {
            return None;
        }
        let length = f64::from(self.array_max).powf(stream.uniform()).round() as u32;
        Some(length.clamp(1, self.array_max))
    }

    /// Draws the estimate of a run with this runtime.
    pub(super) fn estimate(&self, runtime: u64, stream: &mut Stream) -> u64 {
        if self.estimate_max <= 1.0 {
            return runtime;
        }
        let ratio = 1.0 + (self.estimate_max - 1.0) * stream.uniform();
        whole_seconds(runtime as f64 * ratio).max(runtime)
    }
}
