//! EASY backfilling.

use super::{Point, QUEUE_ORDER};
use crate::backfill::{BackfillRules, ReservationDepth};
use crate::predict::{self, Passes, PredictionRules};
use crate::registry::{Example, Needs, ParamReader, Params, PolicyDescriptor, PolicyError, Spelling};

/// `easy`.
pub static EASY: PolicyDescriptor = PolicyDescriptor {
    name: "easy",
    title: "EASY backfilling: a job may start ahead of the first waiting job if it does not delay it",
    paper: "Lifka: The ANL/IBM SP Scheduling System, 1995; Mu'alem, Feitelson, TPDS 12(6), 2001; its orders: Zotkin \
        et al., 2000; EASY-SJBF: Tsafrir, Etsion, Feitelson, TPDS 18(6), 2007",
    promises: "the first waiting job: its shadow time, the earliest time at which it is sure to fit; nothing unless order=arrival or hold_head=true; with predictions nothing unless book=requested",
    needs: Needs { calendar: true, devices: true, ..Needs::NONE },
    spellings: &[Spelling {
        name: "ns",
        means: "",
        title: "no suspension: the baseline of Kettimuthu et al. 2002, for ss, tss and is",
    }],
    examples: &[
        Example {
            policy: "easy(backfill=shortest)",
            meaning: "EASY-SJBF of Tsafrir et al. 2007: the oldest job has the reservation, and the candidates behind it \
                are sorted by their estimates",
        },
        Example {
            policy: "easy(order=shortest)",
            meaning: "SortBF of Zotkin et al. 2000: the whole queue is sorted, so the reservation passes to a shorter job",
        },
        Example {
            policy: "easy(order=lxf)",
            meaning: "LXF-backfill (Chiang, Vernon 2001, section 2.2, by the expansion factor alone): the job with the \
                largest factor has the reservation, and loses it to another one; lxf&w-bf adds their weight of the wait",
        },
        Example {
            policy: "easy(order=lxf, hold_head=true)",
            meaning: "the same, but a job keeps the reservation that it has: the rule of their SJF-backfill (section 2.3)",
        },
        Example {
            policy: "easy(backfill=lxf)",
            meaning: "the scheme of EASY-SJBF with this order: only the candidates are sorted by the expansion factor",
        },
    ],
    read,
};

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let order = params.order("order", "arrival", QUEUE_ORDER)?;
    let backfill = params.order_like(
        "backfill",
        ("order", &order),
        "the order of the candidates behind the head; backfill=shortest is EASY-SJBF",
    )?;
    let hold_head = params.flag(
        "hold_head",
        false,
        "once the first job has a reservation, later jobs cannot displace it",
    )?;
    let settings = params.order_settings()?;
    let (order, candidate_order) = (settings.apply(order), settings.apply(backfill));
    let passes = params.choice(
        "passes",
        &[
            ("every", None, "after every event"),
            (
                "published",
                Some(Passes::Published { fitting: candidate_order == order }),
                "as in the files of Gaussier et al. 2015: none after a correction of a prediction alone, nor, \
                 without an own order of candidates, after a submission that does not fit",
            ),
        ],
        "every",
        "the events after which jobs may start, with predictions",
    )?;
    let predictions = predict::read(params, true)?;
    let predictions =
        predictions.map(|rules| PredictionRules { passes: passes.unwrap_or_default(), ..rules });
    let easy = BackfillRules::recomputed(order, ReservationDepth::First(1));
    Ok(Box::new(Point {
        name: "easy",
        rules: BackfillRules { candidate_order, hold_head, predictions, ..easy },
    }))
}
