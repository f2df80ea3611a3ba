//! The speed of reading tables: rows with the columns of F-DATA, as CSV and, with the feature `parquet`, as Parquet.
//!
//! ```sh
//! cargo run --release -p miserly-import --features parquet --example table_speed -- 2000000
//! ```
//!
//! Prints rows per second of a processor, once for the fields of the format alone (six columns) and once by the preset
//! `f-data` (eight): of the conversion, and of one reading of its jobs behind it. With a folder as second argument, the files
//! stay there, and nothing is measured.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use miserly_import::{ColumnMap, ImportOptions, converted, find_preset};
use miserly_workload::Trace;

/// Six columns.
const SIX: &str = "[table]\nzone = 'Asia/Tokyo'\n[columns]\nsubmit = 'adt'\nstart = 'sdt'\nend = 'edt'\nestimate = 'elpl'\n\
                   procs = 'nnuma'\nuser = 'usr'\n";

/// The names of the columns.
const NAMES: &str = "jid,usr,jnam,jobenv_req,adt,qdt,schedsdt,deldt,sdt,edt,elpl,nnumr,nnuma,nnumu,cnumr,cnumat,cnumut,mszl,\
                     msza,mmszu,ec,exit state,pri,freq_req,freq_alloc,econ,avgpcon,minpcon,maxpcon,perf1,perf2,perf3,perf4,perf5,\
                     perf6,flops,mbwidth,opint,pclass,idle_time_ave,uctmut,sctmut,usctmut,duration";

/// A made job.
struct Job {
    user: u64,
    name: u64,
    submit: i64,
    wait: i64,
    runtime: i64,
    limit: i64,
    nodes: u64,
    completed: bool,
}

/// Returns made jobs from a fixed stream of numbers.
fn jobs(rows: u64) -> impl Iterator<Item = (u64, Job)> {
    let mut state = 1_u64;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut submit = 1_617_235_200;
    (0..rows).map(move |number| {
        submit += draw(9).cast_signed();
        let job = Job {
            user: draw(2_000),
            name: draw(50_000),
            submit,
            wait: draw(7_200).cast_signed(),
            runtime: draw(86_400).cast_signed(),
            limit: (1 + draw(24).cast_signed()) * 3_600,
            nodes: 1 << draw(10),
            completed: draw(10) > 0,
        };
        (number, job)
    })
}

/// Writes a time as the files have it.
fn time(out: &mut impl Write, seconds: i64) -> io::Result<()> {
    let at = jiff::Timestamp::from_second(seconds).map_err(io::Error::other)?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC).datetime();
    write!(
        out,
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    )
}

fn write_csv(path: &Path, rows: u64) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "{NAMES}")?;
    for (number, job) in jobs(rows) {
        write!(out, "jid_{number},usr_{},jnam_{},jobenv_req_1,", job.user, job.name)?;
        for at in [job.submit, job.submit + 1, job.submit + 2, job.submit + 90_000] {
            time(&mut out, at)?;
            write!(out, ",")?;
        }
        time(&mut out, job.submit + job.wait)?;
        write!(out, ",")?;
        time(&mut out, job.submit + job.wait + job.runtime)?;
        let (nodes, state) = (job.nodes, if job.completed { "completed" } else { "failed" });
        let cores = nodes * 48;
        write!(
            out,
            ",{}.0,{nodes},{nodes},{nodes},{cores},{cores},{cores},30064771072.0,30064771072,1234567.0,0,{state},127,",
            job.limit
        )?;
        writeln!(
            out,
            "2000,2000,123456.7,98.7,61.2,131.4,1.2e12,3.4e11,5.6e10,7.8e9,9.1e8,2.3e12,4.5e9,6.7e9,0.67,compute-bound,12.5,1.5,2.5,3.5,{}.0",
            job.runtime
        )?;
    }
    out.flush()
}

#[cfg(feature = "parquet")]
fn write_parquet(path: &Path, rows: u64) -> Result<(), Box<dyn std::error::Error>> {
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    const GROUP: usize = 1 << 17;
    let schema = "message jobs {
        optional binary jid (UTF8); optional binary usr (UTF8); optional binary jnam (UTF8);
        optional int64 adt (TIMESTAMP(MICROS,true)); optional int64 sdt (TIMESTAMP(MICROS,true));
        optional int64 edt (TIMESTAMP(MICROS,true)); optional double elpl; optional int64 nnumr; optional int64 nnuma;
        optional binary \"exit state\" (UTF8);
        optional double perf1; optional double perf2; optional double perf3; optional double perf4; optional double perf5;
    }";
    let schema = schema.replace("\"exit state\"", "exit_state");
    let schema = Arc::new(parse_message_type(&schema)?);
    let properties = WriterProperties::builder().set_compression(parquet::basic::Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
    let mut jobs = jobs(rows);
    loop {
        let chunk: Vec<(u64, Job)> = jobs.by_ref().take(GROUP).collect();
        if chunk.is_empty() {
            break;
        }
        let mut group = writer.next_row_group()?;
        let levels = vec![1_i16; chunk.len()];
        let texts = |group: &mut parquet::file::writer::SerializedRowGroupWriter<'_, File>,
                     of: &dyn Fn(&(u64, Job)) -> String| {
            let values: Vec<ByteArray> =
                chunk.iter().map(|job| ByteArray::from(of(job).into_bytes())).collect();
            let Some(mut column) = group.next_column()? else { return Ok(()) };
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            column.close()
        };
        let numbers = |group: &mut parquet::file::writer::SerializedRowGroupWriter<'_, File>,
                       of: &dyn Fn(&Job) -> i64| {
            let values: Vec<i64> = chunk.iter().map(|(_, job)| of(job)).collect();
            let Some(mut column) = group.next_column()? else { return Ok(()) };
            column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            column.close()
        };
        let doubles = |group: &mut parquet::file::writer::SerializedRowGroupWriter<'_, File>,
                       of: &dyn Fn(&Job) -> f64| {
            let values: Vec<f64> = chunk.iter().map(|(_, job)| of(job)).collect();
            let Some(mut column) = group.next_column()? else { return Ok(()) };
            column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            column.close()
        };
        texts(&mut group, &|(number, _)| format!("jid_{number}"))?;
        texts(&mut group, &|(_, job)| format!("usr_{}", job.user))?;
        texts(&mut group, &|(_, job)| format!("jnam_{}", job.name))?;
        numbers(&mut group, &|job| job.submit * 1_000_000)?;
        numbers(&mut group, &|job| (job.submit + job.wait) * 1_000_000)?;
        numbers(&mut group, &|job| (job.submit + job.wait + job.runtime) * 1_000_000)?;
        doubles(&mut group, &|job| job.limit as f64)?;
        numbers(&mut group, &|job| job.nodes.cast_signed())?;
        numbers(&mut group, &|job| job.nodes.cast_signed())?;
        texts(&mut group, &|(_, job)| if job.completed { "completed".into() } else { "failed".into() })?;
        for _ in 0..5 {
            doubles(&mut group, &|job| job.runtime as f64 * 1.5e9)?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

/// Returns the processor time of this thread: a machine with other work would make the wall time longer.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanos / 1e9)
}

#[allow(clippy::disallowed_methods, reason = "measures")]
fn measure(path: &Path, what: &str, map: ColumnMap) -> Result<(), Box<dyn std::error::Error>> {
    let options = ImportOptions { columns: Some(Arc::new(map)), ..ImportOptions::default() };
    let trace = Trace::open(path)?;
    let begin = (Instant::now(), cpu_seconds()?);
    let (log, report) = converted(trace, &options)?;
    let (wall, seconds) = (begin.0.elapsed().as_secs_f64(), cpu_seconds()? - begin.1);
    let (rows, size) = (report.map_or(0, |report| report.read), std::fs::metadata(path)?.len());
    let (mut reader, mut jobs) = (log.reader()?, 0_u64);
    while reader.next_job()?.is_some() {
        jobs += 1;
    }
    let reading = cpu_seconds()? - begin.1 - seconds;
    println!(
        "{what}: {rows} rows, {wall:.2} s, {seconds:.2} s of a processor: {:.2} M rows/s, {:.0} MB/s; {jobs} jobs, {:.1} M jobs/s",
        rows as f64 / seconds / 1e6,
        size as f64 / seconds / 1e6,
        jobs as f64 / reading / 1e6,
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: u64 = std::env::args().nth(1).map_or(Ok(500_000), |rows| rows.parse())?;
    if let Some(folder) = std::env::args().nth(2) {
        let folder = Path::new(&folder);
        #[cfg(feature = "parquet")]
        write_parquet(&folder.join("jobs.parquet"), rows)?;
        return Ok(write_csv(&folder.join("jobs.csv"), rows)?);
    }
    let folder = tempfile::tempdir()?;
    let csv = folder.path().join("jobs.csv");
    write_csv(&csv, rows)?;
    measure(&csv, "CSV, six columns", ColumnMap::parse("six", SIX)?)?;
    measure(&csv, "CSV, preset f-data", find_preset("f-data")?.map()?)?;
    #[cfg(feature = "parquet")]
    {
        let file = folder.path().join("jobs.parquet");
        write_parquet(&file, rows)?;
        measure(&file, "Parquet, six columns", ColumnMap::parse("six", SIX)?)?;
        let all = miserly_import::PRESETS
            .iter()
            .find(|preset| preset.name == "f-data")
            .map_or("", |preset| preset.text);
        measure(
            &file,
            "Parquet, preset f-data",
            ColumnMap::parse("f-data", &all.replace("exit state", "exit_state"))?,
        )?;
    }
    Ok(())
}
