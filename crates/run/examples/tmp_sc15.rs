use miserly_core::{EventOrder, Procs, Span};
use miserly_policies::PolicySpec;
use miserly_run::{RunOptions, RunSetup};
use miserly_sim::Metrics;
use miserly_workload::{JobOptions, ProcsField, Trace};
fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let jobs = JobOptions {
        procs_field: ProcsField::Requested,
        drop: vec!["runtime<=0".parse()?, "estimate<=0".parse()?],
        ..JobOptions::default()
    };
    let order = if args[2] == "batched" { EventOrder::Batched } else { EventOrder::Sequential };
    for policy in &args[3..] {
        let options = RunOptions {
            procs: Some(Procs::new(args[1].parse()?)),
            jobs: jobs.clone(),
            event_order: order,
            ..RunOptions::default()
        };
        let setup = RunSetup::new(Trace::open(args[0].as_ref())?, options)?;
        let spec: PolicySpec = policy.parse()?;
        let mut metrics = Metrics::new(setup.procs(), Span::ZERO);
        let begin = std::time::Instant::now();
        setup.simulation(&spec)?.run(&mut setup.jobs()?, &mut [&mut metrics])?;
        let s = metrics.measures.bounded_slowdown_standard.summary();
        let w = metrics.measures.wait.summary();
        println!(
            "{policy:60} jobs {} bsld {:.2} wait {:.2} max {:.0} {:?}",
            metrics.simulated(),
            s.mean.unwrap_or_default(),
            w.mean.unwrap_or_default(),
            w.max.unwrap_or_default(),
            begin.elapsed()
        );
    }
    Ok(())
}
