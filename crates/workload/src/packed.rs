//! How a log is packed, told by its first bytes.

/// A way to pack a file that is not read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    start: &'static [u8],
    /// Its name.
    pub name: &'static str,
    /// The command that unpacks a file; the file's name goes behind it.
    pub command: &'static str,
}

const GZIP: &[u8] = &[0x1f, 0x8b];

const OTHERS: [Packing; 5] = [
    Packing { start: b"\xfd7zXZ\0", name: "xz", command: "xz -dk" },
    Packing { start: b"BZh", name: "bzip2", command: "bzip2 -dk" },
    Packing { start: b"\x28\xb5\x2f\xfd", name: "zstd", command: "zstd -d" },
    Packing { start: b"PK\x03\x04", name: "zip", command: "unzip" },
    Packing { start: b"\x1f\x9d", name: "compress", command: "uncompress -k" },
];

/// Whether a file that starts so is gzipped.
pub(crate) fn is_gzipped(start: &[u8]) -> bool {
    start.starts_with(GZIP)
}

/// How a file that starts so is packed, if it is in a way that is not read here.
pub(crate) fn other_packing(start: &[u8]) -> Option<Packing> {
    OTHERS.into_iter().find(|packing| start.starts_with(packing.start))
}
