//! The parameters of predictions, for every policy of the backfill family.

use super::{Book, Corrector, Passes, PredictionRules, Predictor};
use crate::registry::{ParamReader, PolicyError};

/// Reads the parameters; `None` without predictions. `has_head`: the policy makes one reservation, so
/// that a guard makes sense.
pub(crate) fn read(
    params: &mut ParamReader<'_>,
    has_head: bool,
) -> Result<Option<PredictionRules>, PolicyError> {
    let predictor = params.number_or(
        "predict",
        (0.0, |factor| Some(Predictor::scale(factor))),
        &[
            ("none", None, "no predictions: plans and orders use the estimate"),
            ("request", Some(Predictor::Request), "the estimate, as a prediction"),
            (
                "last2",
                Some(Predictor::LastTwo),
                "the mean runtime of the user's last two ended jobs, at most the estimate; the estimate for other users",
            ),
            (
                "similar",
                Some(Predictor::Similar),
                "lengths by the runtimes of similar jobs of the user, at most the estimate; the estimate for other users",
            ),
            ("exact", Some(Predictor::Exact), "the actual runtime: in simulations only"),
        ],
        "none",
        "the runtime by which jobs are planned; a number multiplies the estimate",
    )?;
    let corrector = params.choice(
        "correct",
        &[
            ("request", Corrector::Request, "the estimate"),
            (
                "increment",
                Corrector::Increment,
                "the prediction and 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50, 100 h",
            ),
            ("double", Corrector::Double, "twice the run time"),
        ],
        "request",
        "the next prediction of a job that outlives its prediction",
    )?;
    let guarded = (
        "guarded",
        Book::Guarded,
        "orders use predictions; a waiting job is planned by its optimistic length, a running one by its estimate; \
         a guard limits the delay of the head; nothing is promised",
    );
    let books = [
        ("predicted", Book::Predicted, "orders and plans use predictions; nothing is promised"),
        ("requested", Book::Requested, "orders use predictions; plans and promises use estimates"),
        (
            "both",
            Book::Both,
            "orders use predictions; a waiting job is planned by its estimate, a running one by its prediction; \
             nothing is promised",
        ),
        guarded,
    ];
    let books = if has_head { &books[..] } else { &books[..3] };
    let book = params.choice("book", books, "predicted", "where predictions are used")?;
    Ok(predictor.map(|predictor| PredictionRules { predictor, corrector, book, passes: Passes::Every }))
}
