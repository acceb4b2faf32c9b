"""Vocabulary of the generated texts: 101 words for each of four slots.

101 is prime, which is what lets `corpus` choose groups that share few words.
"""

from __future__ import annotations

_PARTS = """
gateway scheduler ledger parser renderer compiler allocator balancer notifier indexer archiver
crawler exporter importer dispatcher resolver tokenizer validator sampler planner tracer profiler
router proxy mailer uploader downloader throttle sequencer aggregator replicator formatter
serializer watchdog registry broker sandbox installer updater recorder transcoder thumbnailer
invoicer recommender classifier translator geocoder deduplicator encryptor verifier auditor
supervisor launcher debugger inspector mapper reducer merger splitter collector shipper packer
unpacker linker loader cleaner migrator seeder poller publisher subscriber dashboard wallet
checkout catalogue calendar messenger editor viewer player printer scanner thermostat camera
turnstile elevator conveyor sprinkler generator turbine compressor chiller pump furnace centrifuge
spectrometer microscope telescope antenna barometer seismograph
"""

_SYMPTOMS = """
deadlock timeout leak overflow corruption starvation flicker crash regression drift duplication
truncation stall livelock oscillation fragmentation saturation misrouting backlog desync
double-billing checksum-mismatch stack-trace segfault rounding-error off-by-one hang throttling
jitter latency-spike packet-loss brownout overheating vibration clogging corrosion misalignment
leakage condensation blackout short-circuit undervoltage echo distortion blur ghosting banding
stutter freeze rollback lockout expiry mispricing underflow null-reference type-confusion
split-brain failover partition eviction thrashing contention race-condition reordering replay
shadowing misparse mojibake encoding-fault clock-skew quota-breach rate-limit memory-bloat
cache-miss cold-start warm-up throughput-drop disk-full inode-shortage port-exhaustion dns-failure
certificate-expiry handshake-failure token-mismatch permission-gap orphaning dangling-link
schema-drift index-bloat vacuum-lag deadletter poison-message hot-shard skew fan-out
retry-storm thundering-herd cascade backpressure slow-query lost-update
"""

_PLACES = """
Lisbon Oslo Nairobi Quito Hanoi Perth Dublin Tallinn Riga Vilnius Warsaw Prague Vienna Zagreb
Sofia Bucharest Athens Ankara Tbilisi Yerevan Baku Tehran Muscat Doha Manama Kuwait Amman Beirut
Cairo Tunis Algiers Rabat Dakar Accra Lagos Abuja Kampala Kigali Lusaka Harare Maputo Windhoek
Gaborone Pretoria Antananarivo Colombo Dhaka Kathmandu Thimphu Yangon Vientiane Bangkok Manila
Jakarta Brunei Taipei Seoul Kyoto Osaka Sapporo Ulaanbaatar Astana Bishkek Tashkent Kabul Lahore
Delhi Mumbai Chennai Sydney Hobart Darwin Auckland Wellington Suva Apia Honolulu Anchorage
Vancouver Calgary Winnipeg Toronto Montreal Halifax Boston Denver Phoenix Austin Havana Kingston
Bogota Caracas Lima Santiago Montevideo Asuncion Brasilia Recife Reykjavik Bergen Nuuk
"""

_CAUSES = """
firmware thermometer spreadsheet antivirus bootloader cron-job umbrella carpet hydrant backpack
notebook projector headset keyboard joystick modem satellite lighthouse bicycle tramway ferry
helicopter tractor crane excavator bulldozer forklift gondola funicular monorail scooter
wheelbarrow telescope-mount sundial metronome accordion trumpet clarinet bassoon harp drumkit
marimba ukulele violin cello piano organ tambourine microphone amplifier turntable cassette
polaroid tripod lens shutter filter prism mirror magnet battery capacitor resistor transistor
inductor relay fuse breaker socket plug cable bracket hinge bolt washer rivet spring gasket valve
bearing gear pulley lever piston crankshaft gearbox clutch throttle-body radiator alternator
ignition muffler chassis axle rudder anchor keel mast propeller outboard sail
"""


def _slot(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SLOTS: tuple[tuple[str, ...], ...] = tuple(
    _slot(text) for text in (_PARTS, _SYMPTOMS, _PLACES, _CAUSES)
)
