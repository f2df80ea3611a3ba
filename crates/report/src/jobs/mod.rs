//! Per-job files: one exporter per format behind the trait [`Sink`](miserly_sim::Sink).

mod lines;

mod csv;

mod swf;

mod table;

pub use csv::CsvJobs;
pub(crate) use csv::quoted;
pub use swf::SwfJobs;
pub use table::JobTable;
