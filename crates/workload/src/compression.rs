//! Detection of a log's compression by its first bytes.

use std::io::Read;

use flate2::read::MultiGzDecoder;

/// A compression that is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    start: &'static [u8],
    /// Name.
    pub name: &'static str,
    /// Command that decompresses a file; the file name follows it.
    pub command: &'static str,
}

const GZIP: &[u8] = &[0x1f, 0x8b];

const OTHERS: [Compression; 5] = [
    Compression { start: b"\xfd7zXZ\0", name: "xz", command: "xz -dk" },
    Compression { start: b"BZh", name: "bzip2", command: "bzip2 -dk" },
    Compression { start: b"\x28\xb5\x2f\xfd", name: "zstd", command: "zstd -d" },
    Compression { start: b"PK\x03\x04", name: "zip", command: "unzip" },
    Compression { start: b"\x1f\x9d", name: "compress", command: "uncompress -k" },
];

/// Returns whether a file with these first bytes is gzipped.
pub(crate) fn is_gzipped(start: &[u8]) -> bool {
    start.starts_with(GZIP)
}

/// Returns whether a file with these first bytes is a tar archive, gzipped or not.
pub(crate) fn is_tar(start: &[u8]) -> bool {
    const MAGIC: (usize, &[u8]) = (257, b"ustar");
    let has_magic = |bytes: &[u8]| bytes.get(MAGIC.0..).is_some_and(|rest| rest.starts_with(MAGIC.1));
    if !is_gzipped(start) {
        return has_magic(start);
    }
    let mut first = Vec::new();
    let length = (MAGIC.0 + MAGIC.1.len()) as u64;
    // A damaged file is reported when its lines are read.
    MultiGzDecoder::new(start).take(length).read_to_end(&mut first).is_ok() && has_magic(&first)
}

/// Returns the unsupported compression of a file with these first bytes, if any.
pub(crate) fn unsupported_compression(start: &[u8]) -> Option<Compression> {
    OTHERS.into_iter().find(|compression| start.starts_with(compression.start))
}
