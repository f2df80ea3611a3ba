//! Forecasts a log and prints the audit:
//! `cargo run --release -p miserly-forecast --example forecast_log -- LOG.swf conservative`.

use std::path::Path;

use miserly_forecast::forecast_log;
use miserly_policies::PolicySpec;
use miserly_run::{RunOptions, RunSetup};
use miserly_workload::Trace;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let log = args.next().ok_or("give a log")?;
    let policy: PolicySpec = args.next().unwrap_or_else(|| "conservative".into()).parse()?;
    let setup = RunSetup::new(Trace::open(Path::new(&log))?, RunOptions::default())?;
    let forecasts =
        forecast_log(&setup, &policy, args.next().map_or(Ok(20), |draws| draws.parse())?, &mut |_| {})?;
    let all = forecasts.audit.all();
    for (size, class) in
        forecasts.audit.classes().map(|(size, class)| (size.name(), class)).chain([("all", &all)])
    {
        println!("{size}: {} jobs, {} at once", class.jobs, class.at_once);
        for quantile in class.levels.iter().chain([&class.promise, &class.bmbp]) {
            println!("  {:?} {:?} {:?}", quantile.coverage(), quantile.mean_bound(), quantile.pinball());
        }
        println!("  near {:?}", class.near_shares());
    }
    Ok(())
}
