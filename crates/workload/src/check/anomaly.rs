//! Kinds of anomaly with their names, descriptions and severities.

use miserly_core::{described_enum, named_enum};

named_enum! {
    /// The severity of an anomaly, most severe first.
    pub enum Severity {
        /// The line or the log is unusable.
        Error "error",
        /// A simulation skips and counts the job.
        Skipped "skipped",
        /// The line is used unchanged.
        Odd "odd",
    }
}

described_enum! {
    /// A kind of anomaly, most severe first.
    pub enum Anomaly, severity: Severity {
        Malformed "malformed" Error
            "not eighteen numbers; reading stops here without --lenient",
        NoJobs "no_jobs" Error
            "the log has no readable job",
        NoMachineSize "no_machine_size" Error
            "the header has neither MaxProcs nor MaxNodes; give --procs to a simulation",
        NoSubmitTime "no_submit_time" Skipped
            "submit time unknown",
        NoProcessors "no_processors" Skipped
            "no allocated or requested processors above 0",
        TooWide "too_wide" Skipped
            "more processors than the machine has",
        NoRuntime "no_runtime" Skipped
            "runtime unknown",
        ExtraFields "extra_fields" Odd
            "more than eighteen fields; the further ones are ignored",
        MissingFields "missing_fields" Odd
            "fewer than eighteen fields; the missing ones are unknown",
        Decimals "decimals" Odd
            "a whole number with decimals, such as 30.0",
        OutOfOrder "out_of_order" Odd
            "submitted before a preceding job; the jobs are sorted",
        ZeroRuntime "zero_runtime" Odd
            "runtime 0",
        NoEstimate "no_estimate" Odd
            "estimate unknown; the runtime replaces it",
        ZeroEstimate "zero_estimate" Odd
            "estimate 0; the runtime replaces it",
        RanPastEstimate "ran_past_estimate" Odd
            "runtime above the estimate; killed at the estimate by default",
        SizesDiffer "sizes_differ" Odd
            "allocated and requested processors differ; allocated is used by default",
        NoJobNumber "no_job_number" Odd
            "job number below 1",
        DuplicateJobNumber "duplicate_job_number" Odd
            "job number used before",
        NumbersDescend "numbers_descend" Odd
            "job number below the preceding one",
        MemoryOverRequest "memory_over_request" Odd
            "used more memory than it had requested",
        CpuOverRuntime "cpu_over_runtime" Odd
            "cpu time per processor exceeds the runtime by more than 1 s",
        UnknownStatus "unknown_status" Odd
            "status unknown: not 0 to 5",
        PartOfJob "part_of_job" Odd
            "partial execution (status 2 to 4), used as a whole job",
        PrecedingUnknown "preceding_unknown" Odd
            "the preceding job is not in the log",
        PrecedingLater "preceding_later" Odd
            "the preceding job does not precede it in the log",
        OverCapacity "over_capacity" Odd
            "recorded waits imply more running processors than the machine has (clock skew, shared nodes); waits are not used",
        SizeFromMaxNodes "size_from_max_nodes" Odd
            "no usable MaxProcs in the header; MaxNodes is used as the machine size",
        SizeNotPlain "size_not_plain" Odd
            "the machine size in the header is not a plain number; its leading number is used",
        CountDiffers "count_differs" Odd
            "the header has a different number of jobs",
        ZonesDiffer "zones_differ" Odd
            "TimeZone is not an offset of TimeZoneString, which is used",
        UnknownZone "unknown_zone" Odd
            "TimeZoneString is not a known zone; TimeZone is used if present",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_of_severity_and_named_once() {
        assert!(Anomaly::ALL.is_sorted_by_key(|anomaly| anomaly.severity()));
        let mut names: Vec<_> = Anomaly::ALL.iter().map(|anomaly| anomaly.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Anomaly::ALL.len());
    }
}
