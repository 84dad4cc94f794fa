"""Messages about a driver's jobs: recorded files, and what the kernel would refuse."""

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "DRM-001",
        "Not a recorded job",
        "The path is neither a job directory (with a submit.json) nor a run directory (with "
        "directories jobNNNN in it).",
        "tests/data/vc4-jobs/README.md",
        "Name a directory jobNNNN, or the directory that holds them.",
    ),
    Entry(
        "DRM-002",
        "Job description damaged",
        "submit.json is not readable JSON, or a field of struct drm_vc4_submit_cl is missing, of "
        "the wrong type or out of range.",
        "include/uapi/drm/vc4_drm.h, struct drm_vc4_submit_cl",
        "Record the job again.",
    ),
    Entry(
        "DRM-003",
        "Stream or buffer content missing",
        "A file of the recording (bin_cl.bin, shader_rec.bin, uniforms.bin or a blob) is missing, "
        "shorter than announced, or cannot be decompressed. Missing bytes of a buffer count as "
        "zero; a job with an incomplete stream is left out.",
        "tests/data/vc4-jobs/README.md",
        "Copy the blobs directory along with the runs; it lies next to them.",
    ),
    Entry(
        "DRM-004",
        "Buffer does not fit in memory",
        "A buffer's address and size reach beyond the GPU's 1 GiB, it is larger than 256 MiB, it "
        "does not begin with a page of 4096 bytes, or no room is left for the binner.",
        "1 GiB of bus addresses, BCM2835 ARM Peripherals p. 5",
        "Check the recording's buffer list.",
    ),
    Entry(
        "DRM-005",
        "Buffer index out of range",
        "A list, a record or a uniform names a buffer by an index beyond the job's buffer list. "
        "The kernel answers EINVAL.",
        "Linux vc4_validate.c, vc4_use_bo",
        "Indices count entries of bo_handles, not GEM handles.",
    ),
    Entry(
        "DRM-006",
        "Record not allowed in a submitted binning list",
        "The kernel copies and checks the binning list and only accepts records that cannot reach "
        "memory outside of the job's buffers: no branches, stores, loads or NV and VG states.",
        "Linux vc4_validate.c, cmd_info table",
        "Leave it out; the kernel makes the rendering list itself.",
    ),
    Entry(
        "DRM-007",
        "Binning list out of order",
        "A submitted binning list must have exactly one mode configuration (112) before exactly "
        "one Start Tile Binning (6), and must end with Increment Semaphore (7) and Flush (4).",
        "Linux vc4_validate.c, vc4_validate_bin_cl",
        "112, 6, state and draws, 7, 4.",
    ),
    Entry(
        "DRM-008",
        "Shader record stream does not fit the list",
        "Every GL shader state record of the list takes one record of the stream: 3 + n buffer "
        "indices and 36 + 8n bytes (extended 100 + 4n). The stream is shorter, the list names more "
        "records than announced, or record 64 carries an address although the kernel fills it in.",
        "Linux vc4_validate.c, validate_gl_shader_state and vc4_validate_shader_recs",
        "Count attributes in the low bits of record 64 (0 means 8).",
    ),
    Entry(
        "DRM-009",
        "Uniform stream too short",
        "The three programs of a shader record consume more words than the stream has left: one "
        "index per texture request, one word per uniform read and per texture parameter.",
        "Linux vc4_validate.c, validate_gl_shader_rec",
        "Write uniforms in the textual order of the instructions, fragment shader first.",
    ),
    Entry(
        "DRM-010",
        "Texture does not fit its buffer",
        "Level 0 reaches beyond the end of the buffer, the mip levels below it beyond its start, a "
        "cube map has no stride, a memory lookup is not clamped to its buffer, or the type is one "
        "the kernel does not accept. The hardware would read other memory.",
        "Linux vc4_validate.c, reloc_tex",
        "Parameter 0 holds the offset of level 0; smaller levels lie below it.",
    ),
    Entry(
        "DRM-011",
        "Shader program not acceptable",
        "A code address is not the start of a buffer, the program has no end inside its buffer, or "
        "its thread switches contradict the shader record's flag.",
        "Linux vc4_validate_shaders.c",
        "Each program in a buffer of its own, ended by the program-end signal and two more "
        "instructions.",
    ),
    Entry(
        "DRM-012",
        "Index or attribute array reaches beyond its buffer",
        "With the highest index of the draws the vertex fetch would read past the buffer.",
        "Linux vc4_validate.c, validate_indexed_prim_list and validate_gl_shader_rec",
        "Check offset, stride and maximum index.",
    ),
    Entry(
        "DRM-013",
        "Render surface not usable",
        "A surface is missing, misaligned, too large for its buffer, or its format bits are not "
        "those the kernel allows.",
        "Linux vc4_render_cl.c, vc4_rcl_surface_setup",
        "At least one surface to write; format 0-2, tiling 0-2, offset a multiple of 16.",
    ),
    Entry(
        "DRM-014",
        "Tile range wrong",
        "The tiles to render are empty, or reach beyond those of the binning list.",
        "Linux vc4_render_cl.c, vc4_get_rcl",
        "min <= max, and max below the binning configuration's counts.",
    ),
    Entry(
        "DRM-015",
        "Nothing to show",
        "The job renders into no colour surface, so it has no picture; of a whole run, the last "
        "picture is that of a job before it.",
        "struct drm_vc4_submit_cl: color_write",
        "Replay a job that writes colour; depth-only jobs run, but leave no picture.",
        Severity.WARNING,
    ),
    Entry(
        "DRM-016",
        "Job did not finish",
        "The frame's end was not reached: one of the list threads stopped or waits, or a shader "
        "does not end. The job is given up and the GPU reset, as the kernel does. The picture is "
        "what was stored until then.",
        "registers CT0CS, CT1CS, RFC",
        "Look at the diagnostics before this one: they name the record at fault.",
    ),
    Entry(
        "DRM-017",
        "Unknown submit flag",
        "The job has flags that the kernel does not know, or padding that is not 0.",
        "Linux vc4_gem.c, vc4_submit_cl_ioctl; include/uapi/drm/vc4_drm.h",
        "Known: 1 clear, 2 fixed tile order, 4 increasing X, 8 increasing Y.",
    ),
    Entry(
        "DRM-018",
        "Signal or register not allowed in a driver's shader",
        "The kernel lets a shader neither interrupt the host, nor start a VPM DMA, release the "
        "mutex, change the TMU swap or the alpha mask; breakpoints, coverage loads, alpha mask "
        "loads and the signal 'colour load and end' are refused too.",
        "Linux vc4_validate_shaders.c, check_reg_write and vc4_validate_shader",
        "Use SRQPC (a user program) for programs that need DMA.",
    ),
    Entry(
        "DRM-019",
        "Uniforms cannot be counted",
        "The kernel must know which word of the stream an instruction reads. After a branch "
        "target the address has to be written first: add unif_addr, <immediate>, unif, "
        "unconditional, where the immediate is the offset of the word after that uniform.",
        "Linux vc4_validate_shaders.c, validate_uniform_address_write",
        "Load the offset with ldi, add a uniform to it, write only the file A address.",
    ),
    Entry(
        "DRM-020",
        "Texture set-up not acceptable",
        "Both ALUs write texture registers, a uniform is read in the same instruction, more than 4 "
        "parameters come before S, a branch leads between them, or a memory lookup is not "
        "add t0s, <min(max(x, 0), uniform)>, unif.",
        "Linux vc4_validate_shaders.c, check_tmu_write and track_live_clamps",
        "Clamp with max x, 0 (small immediate), then min x, unif; both unconditional.",
    ),
    Entry(
        "DRM-021",
        "Branch or thread switch not acceptable",
        "Branches must be relative, not through a register, by multiples of 8 bytes, inside the "
        "shader, at least 4 instructions apart, 3 after a thread switch, and write no link; "
        "thread switches are at least 3 instructions apart.",
        "Linux vc4_validate_shaders.c, vc4_validate_branches and check_branch",
        "Leave the delay slots free of branches and switches.",
    ),
    Entry(
        "DRM-022",
        "A threaded shader uses the other thread's registers",
        "Two threads share the register files: each has registers 0 to 15 of A and B.",
        "Linux vc4_validate_shaders.c, all_registers_used",
        "Use ra0-ra15 and rb0-rb15, or do not switch threads.",
    ),
    Entry(
        "DRM-023",
        "Job names no buffers, or too many records",
        "A job without a buffer object cannot have any list or surface, and the announced number "
        "of shader records must be one that memory can hold.",
        "Linux vc4_gem.c, vc4_cl_lookup_bos and vc4_get_bcl",
        "Pass the handles of all buffers the job uses.",
    ),
    Entry(
        "DRM-024",
        "Tile beyond the binning grid",
        "The last tile lies one column or row beyond the grid of the binning list. The kernel lets "
        "this pass; such a tile draws the list of another tile, or what comes after all lists.",
        "Linux vc4_gem.c: compares with > where >= is meant",
        "The last tile is the number of tiles minus one.",
        Severity.WARNING,
    ),
    Entry(
        "DRM-025",
        "Full-resolution tile past its buffer",
        "The last tile of a full-resolution surface lies past the end of its buffer. The kernel "
        "lets this pass; the tile is read from or written to what comes next in memory.",
        "Linux vc4_render_cl.c, vc4_full_res_bounds_check: asks for the tiles before the last only",
        "A full-resolution surface has 16384 bytes a tile of 32x32 pixels.",
        Severity.WARNING,
    ),
    Entry(
        "DRM-040",
        "Read of memory that the processor does not cache",
        "A process reads a buffer through a mapping that is write-combined or uncached. Writes to "
        "it are gathered and fast; every read waits for the memory, so that the processor of the "
        "board takes several times as long as for cached memory. Seen with --cpu-memory only; "
        "the bytes are a lower bound.",
        "docs/cpu_memory.md; Linux pgprot_writecombine",
        "Let the GPU or the display do the copy; keep a copy of one's own and only write the "
        "buffer; or create it cached (xlnx: flags 6, or dumb_cache_default_mode=1).",
        Severity.HINT,
    ),
    Entry(
        "DRM-041",
        "The display shows a buffer that is in the processor's cache",
        "A process wrote a cached buffer, and the display reads memory: what has not left the "
        "cache is missing from the picture until it does. Seen with --cpu-memory only.",
        "unknown dma_coherent; docs/cpu_memory.md",
        "Create scan-out buffers with the cache off (xlnx: flags 5).",
        Severity.WARNING,
    ),
    Entry(
        "DRM-042",
        "Read of a cached buffer after the GPU wrote it",
        "The process had the buffer's pages in its cache when the GPU wrote them to memory, and "
        "nothing invalidated them: the read may give the old bytes. The driver has no hook for "
        "DMA_BUF_IOCTL_SYNC. Seen with --cpu-memory only.",
        "unknown dma_coherent; docs/cpu_memory.md",
        "Use an uncached buffer, or a driver that maintains caches in begin_cpu_access.",
        Severity.WARNING,
    ),
]
