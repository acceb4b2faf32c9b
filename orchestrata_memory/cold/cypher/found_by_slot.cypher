UNWIND $slots AS slot
MATCH (m:Memory {slot: slot})
RETURN collect(/*found*/)
