//! The questions to a daemon, in a build without one.

use anyhow::anyhow;

use crate::args::{ForecastArgs, WaitOfArgs, WhatIfArgs};
use crate::features::DAEMON;

pub(crate) fn forecast(args: &ForecastArgs) -> anyhow::Result<()> {
    let (log, daemon) = (args.trace.display(), DAEMON.absent("a forecast of the daemon"));
    Err(anyhow!("{log}: a log needs a policy, such as --policy easy; {daemon}"))
}

pub(crate) fn wait_of(_: &WaitOfArgs, job: &[String]) -> anyhow::Result<()> {
    Err(DAEMON.absent(&format!("--daemon {}", job.join(" "))))
}

pub(crate) fn what_if(_: &WhatIfArgs) -> anyhow::Result<()> {
    Err(DAEMON.absent("give a log; a question about the daemon"))
}
