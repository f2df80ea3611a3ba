//! Conservative backfilling, with and without guarantees.

use super::{Point, ZOTKIN};
use crate::backfill::{BackfillRules, ReservationDepth};
use crate::predict;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};

/// `conservative`.
pub static CONSERVATIVE: PolicyDescriptor = PolicyDescriptor {
    name: "conservative",
    title: "conservative backfilling: every job has a reservation, which never moves later",
    paper: ZOTKIN,
    promises: "every job, when it is submitted; nothing with keep_reservations=false; with predictions nothing unless book=requested",
    needs: Needs { calendar: true, devices: true, begin_and_deadline: true, ..Needs::NONE },
    spellings: &[],
    examples: &[],
    read,
};

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let order = params.order(
        "order",
        "arrival",
        "the order in which reservations are compressed; new ones are made in order of submission",
    )?;
    let keeps = params.flag(
        "keep_reservations",
        true,
        "false: all reservations are recomputed at each pass, in the order of the queue",
    )?;
    let order = params.order_settings()?.apply(order);
    let rules = if keeps {
        BackfillRules::kept(order)
    } else {
        BackfillRules::recomputed(order, ReservationDepth::All)
    };
    let predictions = predict::read(params, false)?;
    Ok(Box::new(Point { name: "conservative", rules: BackfillRules { predictions, ..rules } }))
}
