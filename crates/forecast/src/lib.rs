//! Forecasts of the starts of waiting jobs, with bounds that are audited.
//!
//! A forecast is made when a job was submitted and did not start at once. It has upper bounds of the wait, of which the
//! first one is the median. Simulations from the present state, with the same policy, give the points from which they are
//! derived: some with likely runtimes ([`RuntimeModel`]), one with the requested ones. The bounds are then calibrated by
//! what came of earlier forecasts ([`Calibration`]).
//!
//! **Architecture invariant:** a forecast uses only what was known at its instant. It works on copies of the ledger, and
//! changes no decision.

mod replay;

mod ahead;

mod runtimes;

mod calibration;

mod conformal;

mod bmbp;

mod present;

mod what_if;

mod audit;

pub use self::ahead::{Points, SystemCopy};
pub use self::audit::{Audit, ClassAudit, LEVEL_CLASSES, LEVELS, Quantile, SizeClass};
pub use self::bmbp::Bmbp;
pub use self::calibration::Calibration;
pub use self::conformal::{Conformal, Waits};
pub use self::present::{
    AHEAD_BESIDE_CLOSED, Compared, Comparison, Differences, Forecaster, Given, LiveQueue,
};
pub use self::replay::{ForecastError, Forecasts, JobForecast, check_policy, forecast_log};
pub use self::runtimes::{RuntimeModel, Runtimes};
pub use self::what_if::{
    Added, GroupDifference, JobDifference, SHAKE, Spread, Variant, WhatIf, added_job, coverage, what_if,
};
