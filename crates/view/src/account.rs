//! Promises and forecasts so far: kept and broken ones.

use miserly_api::model::Status;
use serde::Serialize;

/// The promises and forecasts of all jobs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Jobs that were promised a start.
    pub promises: u64,
    /// Those that started in time.
    pub kept: u64,
    /// Those to which a promise was broken.
    pub broken: u64,
    /// Those that started later than promised.
    pub late: u64,
    /// The audit of forecasts; absent if none was audited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecasts: Option<ForecastAccount>,
}

/// The jobs with a forecast, and those that started by its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ForecastAccount {
    /// Jobs with a forecast that started.
    pub audited: u64,
    /// Those that started by the median, by the bound of 80 % and by that of 95 %.
    pub kept: [u64; 3],
}

impl Account {
    /// Returns the account of a daemon.
    pub fn of(status: &Status) -> Account {
        let Status { promises, kept, broken, late, forecasts, .. } = *status;
        let forecasts = forecasts.map(|forecasts| ForecastAccount {
            audited: forecasts.audited,
            kept: [forecasts.kept_50, forecasts.kept_80, forecasts.kept_95],
        });
        Account { promises, kept, broken, late, forecasts }
    }
}
