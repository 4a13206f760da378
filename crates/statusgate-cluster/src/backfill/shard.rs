//! A shard: a part of all objects, by a stable hash of the uid.

use std::fmt;
use std::str::FromStr;

use crate::hash::fnv1a_64;

/// One of several equal parts: `0/4` is the first of four. An object belongs to the part
/// `FNV-1a-64(uid) mod N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// All objects.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// The number of parts.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Whether an object belongs here.
    pub fn holds(self, uid: &str) -> bool {
        fnv1a_64(uid.as_bytes()) % u64::from(self.count) == u64::from(self.index)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (index, count) = text.split_once('/').ok_or(ShardError)?;
        let parse = |text: &str| text.parse::<u32>().map_err(|_| ShardError);
        let shard = Self { index: parse(index)?, count: parse(count)? };
        if shard.index < shard.count { Ok(shard) } else { Err(ShardError) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

/// An invalid shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a shard is I/N with I from 0 to N-1, such as 0/4")]
pub struct ShardError;

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(number: u32) -> String {
        format!("{number:08x}-0000-4000-8000-{:012x}", u64::from(number) * 7919)
    }

    #[test]
    fn shards_are_disjoint_and_cover_everything_and_are_about_equal() {
        for count in [1, 2, 3, 7, 16] {
            let shards: Vec<Shard> = (0..count).map(|index| Shard { index, count }).collect();
            let mut sizes = vec![0_u32; shards.len()];
            for number in 0..10_000 {
                let uid = uid(number);
                let holders: Vec<usize> =
                    (0..shards.len()).filter(|index| shards[*index].holds(&uid)).collect();
                assert_eq!(holders.len(), 1, "{uid} of {count}");
                sizes[holders[0]] += 1;
            }
            let fair = 10_000 / count;
            assert!(sizes.iter().all(|size| size.abs_diff(fair) < fair / 4), "{sizes:?}");
        }
    }

    #[test]
    fn only_parts_that_exist_are_valid() {
        assert_eq!("3/4".parse::<Shard>().map(|shard| shard.to_string()), Ok("3/4".to_owned()));
        for bad in ["", "4/4", "0/0", "1", "-1/4", "a/b", "1/2/3"] {
            assert_eq!(bad.parse::<Shard>(), Err(ShardError), "{bad}");
        }
    }
}
