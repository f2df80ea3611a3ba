//! `miserly explain`: the history of one job.

use miserly_questions::explain;
use miserly_workload::Estimates;

use crate::args::ExplainArgs;
use crate::output::{print, print_json, width};
use crate::run_options::prepare;

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let setup = prepare(&args.trace, &args.run, Estimates::default())?;
    let explanation = explain(&setup, &args.policy, args.job, &mut [])?;
    if args.json {
        return print_json(&explanation);
    }
    print(&explanation.text(width(), args.seconds))
}
