//! First come, first served.

use crate::NaiveOrder;
use crate::world::World;

/// Starts jobs in queue order, up to the first that does not fit.
pub(crate) fn pass(world: &mut World<'_>, order: NaiveOrder) {
    for position in world.queue(order) {
        if !world.fits_now(position) {
            return;
        }
        world.start(position);
    }
}
