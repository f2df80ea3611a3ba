//! `miserly slurm holes`: what can start now, and for how long.

use miserly_slurm::{Hole, Observed};

use super::{instant, read_to_schedule, seconds, table};
use crate::args::SlurmHolesArgs;
use crate::output::{print, print_json};

pub(super) fn holes(args: &SlurmHolesArgs) -> anyhow::Result<()> {
    let slurm = args.cluster.slurm();
    let cluster = read_to_schedule(&slurm)?;
    if let Some(partition) = &args.partition {
        cluster.check_partition(partition)?;
    }
    let mut holes = cluster.holes(&Observed::read(&slurm, &cluster));
    holes.retain(|hole| args.partition.as_ref().is_none_or(|partition| *partition == hole.partition));
    if args.json {
        return print_json(&holes);
    }
    if holes.is_empty() {
        return print("nothing can start now\n");
    }
    print(&text(&holes))
}

fn text(holes: &[Hole]) -> String {
    let has_memory = holes.iter().any(|hole| hole.most_memory.is_some());
    let has_gpus = holes.iter().any(|hole| hole.gpus > 0);
    let mut header = vec!["PARTITION", "TIME LIMIT", "UNTIL", "NODES", "IDLE", "CPUS", "OF A NODE"];
    header.extend(has_memory.then_some("MEMORY OF A NODE"));
    header.extend(has_gpus.then_some("GPUS"));
    let row = |hole: &Hole| {
        let mut row = vec![
            hole.partition.clone(),
            hole.longest.map_or_else(|| "any".to_owned(), seconds),
            hole.until.map_or_else(|| "-".to_owned(), instant),
        ];
        row.extend([hole.nodes, hole.idle, hole.cpus, hole.most_cpus].map(|number| number.to_string()));
        row.extend(has_memory.then(|| format!("{}M", hole.most_memory.unwrap_or(0))));
        row.extend(has_gpus.then(|| hole.gpus.to_string()));
        row
    };
    table(&header, &header[3..], holes.iter().map(row))
}
