"""Messages about a driver's jobs: recorded files, and what the kernel would refuse."""

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "DRM-001",
        "Not a recorded job",
        "The path is neither a job directory (with a submit.json) nor a run directory (with "
        "subdirectories jobNNNN).",
        "tests/data/vc4-jobs/README.md",
        "Name a directory jobNNNN, or the directory that contains them.",
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
        "zero; a job with an incomplete stream is skipped.",
        "tests/data/vc4-jobs/README.md",
        "Copy the blobs directory together with the runs; it lies next to them.",
    ),
    Entry(
        "DRM-004",
        "Buffer does not fit in memory",
        "A buffer extends beyond the GPU's 1 GiB, is larger than 256 MiB, does not begin at a "
        "multiple of 4096 bytes, or leaves no room for the binner.",
        "1 GiB of bus addresses, BCM2835 ARM Peripherals p. 5",
        "Check the recording's buffer list.",
    ),
    Entry(
        "DRM-005",
        "Buffer index out of range",
        "A list, a record or a uniform names a buffer by an index beyond the job's buffer list. "
        "The kernel returns EINVAL.",
        "Linux vc4_validate.c, vc4_use_bo",
        "Use indices of entries of bo_handles, not GEM handles.",
    ),
    Entry(
        "DRM-006",
        "Record not allowed in a submitted binning list",
        "The kernel copies and checks the binning list, and accepts only records that cannot reach "
        "memory outside the job's buffers: no branches, stores, loads, NV or VG states.",
        "Linux vc4_validate.c, cmd_info table",
        "Leave it out; the kernel generates the rendering list itself.",
    ),
    Entry(
        "DRM-007",
        "Binning list out of order",
        "A submitted binning list must have exactly one mode configuration (112) before exactly "
        "one Start Tile Binning (6), and must end with Increment Semaphore (7) and Flush (4).",
        "Linux vc4_validate.c, vc4_validate_bin_cl",
        "Use the order 112, 6, state and draws, 7, 4.",
    ),
    Entry(
        "DRM-008",
        "Shader record stream does not fit the list",
        "Each GL shader state record of the list takes one record of the stream: 3 + n buffer "
        "indices and 36 + 8n bytes (extended: 100 + 4n). The stream is too short, the list has "
        "more such records than announced, or record 64 contains an address although the kernel "
        "fills it in.",
        "Linux vc4_validate.c, validate_gl_shader_state and vc4_validate_shader_recs",
        "The low bits of record 64 are the number of attributes (0 means 8).",
    ),
    Entry(
        "DRM-009",
        "Uniform stream too short",
        "The three programs of a shader record consume more words than the stream has left: one "
        "index for each texture request, one word for each uniform read and each texture "
        "parameter.",
        "Linux vc4_validate.c, validate_gl_shader_rec",
        "Write uniforms in the order of the instructions that read them, the fragment shader's first.",
    ),
    Entry(
        "DRM-010",
        "Texture does not fit its buffer",
        "Level 0 extends past the end of the buffer, smaller mip levels extend before its start, a "
        "cube map has no stride, a memory lookup is not clamped to its buffer, or the kernel does "
        "not accept the type. The hardware would read other memory.",
        "Linux vc4_validate.c, reloc_tex",
        "Parameter 0 holds the offset of level 0; the smaller levels lie before it.",
    ),
    Entry(
        "DRM-011",
        "Shader program not accepted",
        "A code address is not the start of a buffer, the program does not end inside its buffer, "
        "or its thread switches contradict the shader record's flag.",
        "Linux vc4_validate_shaders.c",
        "Put each program into a buffer of its own and end it with the program-end signal and two "
        "more instructions.",
    ),
    Entry(
        "DRM-012",
        "Index or attribute array reaches beyond its buffer",
        "With the highest index of the draws, the vertex fetch would read past the end of the buffer.",
        "Linux vc4_validate.c, validate_indexed_prim_list and validate_gl_shader_rec",
        "Check offset, stride and maximum index.",
    ),
    Entry(
        "DRM-013",
        "Render surface cannot be used",
        "A surface is missing, misaligned, too large for its buffer, or has format bits that the "
        "kernel does not allow.",
        "Linux vc4_render_cl.c, vc4_rcl_surface_setup",
        "Give at least one surface to write, with format 0-2, tiling 0-2 and an offset that is a "
        "multiple of 16.",
    ),
    Entry(
        "DRM-014",
        "Tile range wrong",
        "The range of tiles to render is empty, or extends beyond the tiles of the binning list.",
        "Linux vc4_render_cl.c, vc4_get_rcl",
        "min must not exceed max, and max must be below the binning configuration's counts.",
    ),
    Entry(
        "DRM-015",
        "Nothing to show",
        "The job renders to no colour surface, so there is no picture of it. For a whole run the "
        "last picture is that of an earlier job.",
        "struct drm_vc4_submit_cl: color_write",
        "Replay a job that writes colour. Depth-only jobs run, but have no picture.",
        Severity.WARNING,
    ),
    Entry(
        "DRM-016",
        "Job did not finish",
        "The end of the frame was not reached: a list thread stopped or waits, or a shader does "
        "not end. The job is abandoned and the GPU reset, as by the kernel. The picture shows what "
        "was stored until then.",
        "registers CT0CS, CT1CS, RFC",
        "See the messages before this one: they name the record at fault.",
    ),
    Entry(
        "DRM-017",
        "Unknown submit flag",
        "The job has flags that the kernel does not know, or padding that is not 0. The kernel "
        "returns EINVAL.",
        "Linux vc4_gem.c, vc4_submit_cl_ioctl; include/uapi/drm/vc4_drm.h",
        "The known flags are 1 (clear), 2 (fixed tile order), 4 (increasing X) and 8 (increasing Y).",
    ),
    Entry(
        "DRM-018",
        "Signal or register not allowed in a driver's shader",
        "The kernel does not let a shader interrupt the host, start a VPM DMA, release the mutex, "
        "or change the TMU swap or the alpha mask. It also refuses breakpoints, coverage loads, "
        "alpha mask loads and the signal 'colour load and end'.",
        "Linux vc4_validate_shaders.c, check_reg_write and vc4_validate_shader",
        "Use SRQPC (a user program) for programs that need DMA.",
    ),
    Entry(
        "DRM-019",
        "Uniforms cannot be counted",
        "The kernel must know which word of the stream an instruction reads. So a branch target "
        "must first set the uniform address: add unif_addr, <immediate>, unif, unconditionally, "
        "where the immediate is the offset of the word after that uniform.",
        "Linux vc4_validate_shaders.c, validate_uniform_address_write",
        "Load the offset with ldi, add a uniform to it, and write only the file A address.",
    ),
    Entry(
        "DRM-020",
        "Texture set-up not accepted",
        "Both ALUs write texture registers, a uniform is read in the same instruction, more than 4 "
        "parameters precede S, a branch separates them, or a memory lookup is not of the form add "
        "t0s, <min(max(x, 0), uniform)>, unif.",
        "Linux vc4_validate_shaders.c, check_tmu_write and track_live_clamps",
        "Clamp with max x, 0 (small immediate), then min x, unif, both unconditionally.",
    ),
    Entry(
        "DRM-021",
        "Branch or thread switch not accepted",
        "Branches must be relative, not through a register, by multiples of 8 bytes, inside the "
        "shader, at least 4 instructions apart, at least 3 after a thread switch, and without a "
        "link; thread switches must be at least 3 instructions apart.",
        "Linux vc4_validate_shaders.c, vc4_validate_branches and check_branch",
        "Put no branch and no thread switch into delay slots.",
    ),
    Entry(
        "DRM-022",
        "A threaded shader uses the other thread's registers",
        "Two threads share the register files: each may use registers 0 to 15 of A and B only.",
        "Linux vc4_validate_shaders.c, all_registers_used",
        "Use ra0-ra15 and rb0-rb15, or do not switch threads.",
    ),
    Entry(
        "DRM-023",
        "Job names no buffers, or too many records",
        "A job without a buffer object has neither lists nor surfaces, and the announced shader "
        "records must fit into memory.",
        "Linux vc4_gem.c, vc4_cl_lookup_bos and vc4_get_bcl",
        "Pass the handles of all buffers that the job uses.",
    ),
    Entry(
        "DRM-024",
        "Tile beyond the binning grid",
        "The last tile lies one column or row beyond the grid of the binning list. The kernel does "
        "not detect this. Such a tile draws another tile's list, or whatever follows the lists in "
        "memory.",
        "Linux vc4_gem.c: compares with > where >= is meant",
        "The last tile is the number of tiles minus one.",
        Severity.WARNING,
    ),
    Entry(
        "DRM-025",
        "Full-resolution tile past its buffer",
        "The last tile of a full-resolution surface lies past the end of its buffer. The kernel "
        "does not detect this. The tile is read from, or written to, whatever follows in memory.",
        "Linux vc4_render_cl.c, vc4_full_res_bounds_check: asks for the tiles before the last only",
        "Reserve 16384 bytes for each tile of 32x32 pixels of a full-resolution surface.",
        Severity.WARNING,
    ),
    Entry(
        "DRM-026",
        "No memory left for a buffer",
        "All programs on the device share its buffer memory, as on a board. The program gets "
        "ENOMEM. OpenGL drivers often go on without the buffer and leave draws out, or crash, so a "
        "program may draw black because another one takes all memory. Reported once for each open "
        "file of the device.",
        "Linux vc4_bo.c, vc4_bo_create",
        "Run the programs one after the other, end the one that takes the memory, or give the "
        "device more with --gpu-memory. Shaders have 63 MiB of their own.",
        Severity.WARNING,
    ),
    Entry(
        "DRM-027",
        "A gamma table larger than the driver's",
        "GAMMA_LUT may have any number of entries as far as the kernel checks, and vc4 copies all of "
        "them into tables of 256: what is beyond overwrites the next colour's table, and then other "
        "memory of the kernel. Here the first 256 entries count.",
        "Linux 6.1 vc4_hvs.c, vc4_hvs_update_gamma_lut; drm_atomic_uapi.c, "
        "drm_atomic_replace_property_blob_from_id",
        "Give GAMMA_LUT as many entries as GAMMA_LUT_SIZE says.",
        Severity.WARNING,
    ),
    Entry(
        "DRM-040",
        "Read of uncached memory by the processor",
        "A process reads a buffer through a write-combined or uncached mapping. Writes to it are "
        "combined and fast, but each read waits for the memory, so the board's processor takes "
        "several times as long as with cached memory. Found with --cpu-memory; the byte counts are "
        "lower bounds.",
        "docs/cpu_memory.md; Linux pgprot_writecombine",
        "Let the GPU or the display copy the buffer; or keep a copy of your own and only write the "
        "buffer; or create it cached (xlnx: flags 6, or dumb_cache_default_mode=1).",
        Severity.HINT,
    ),
    Entry(
        "DRM-041",
        "The display shows a buffer that the processor's cache holds",
        "A process wrote a cached buffer and the display reads memory, so the picture lacks "
        "whatever is still in the cache. Found with --cpu-memory.",
        "unknown dma_coherent; docs/cpu_memory.md",
        "Create scan-out buffers uncached (xlnx: flags 5).",
        Severity.WARNING,
    ),
    Entry(
        "DRM-042",
        "Read of a cached buffer after the GPU wrote it",
        "The process had the buffer's pages in its cache when the GPU wrote them to memory, and "
        "nothing invalidated them, so the read may return old bytes. The driver does not implement "
        "DMA_BUF_IOCTL_SYNC. Found with --cpu-memory.",
        "unknown dma_coherent; docs/cpu_memory.md",
        "Use an uncached buffer, or a driver that maintains caches in begin_cpu_access.",
        Severity.WARNING,
    ),
]
